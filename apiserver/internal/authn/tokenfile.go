package authn

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"kctl/apiserver/internal/request"
)

// TokenFile knows the tokens of a file with lines of
// token,user,uid,"group1,group2" (Kubernetes docs, "Static token file").
type TokenFile struct {
	audiences []string // what its tokens are valid for: the API
	entries   []tokenEntry
}

type tokenEntry struct {
	sum  [sha256.Size]byte
	user *request.User
}

// LoadTokenFile reads a token file. A change of the file needs a restart.
func LoadTokenFile(path string, apiAudiences []string) (*TokenFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("token file: %w", err)
	}
	defer f.Close()
	t, err := readTokens(f, apiAudiences)
	if err != nil {
		return nil, fmt.Errorf("token file %s: %w", path, err)
	}
	return t, nil
}

func readTokens(r io.Reader, apiAudiences []string) (*TokenFile, error) {
	t := &TokenFile{audiences: apiAudiences}
	lines := csv.NewReader(r)
	lines.FieldsPerRecord = -1
	lines.Comment = '#'
	for {
		record, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := lines.FieldPos(0)
		if len(record) < 3 {
			return nil, fmt.Errorf("line %d: token, user name and user id are required, but there are %d columns", line, len(record))
		}
		for i := range record {
			record[i] = strings.TrimSpace(record[i])
		}
		if record[0] == "" || record[1] == "" {
			return nil, fmt.Errorf("line %d: the token and the user name must not be empty", line)
		}
		entry := tokenEntry{sum: sha256.Sum256([]byte(record[0])), user: &request.User{Username: record[1], UID: record[2]}}
		if slices.ContainsFunc(t.entries, func(e tokenEntry) bool { return e.sum == entry.sum }) {
			return nil, fmt.Errorf("line %d: duplicate token", line)
		}
		if len(record) > 3 && record[3] != "" {
			for group := range strings.SplitSeq(record[3], ",") {
				entry.user.Groups = append(entry.user.Groups, strings.TrimSpace(group))
			}
		}
		t.entries = append(t.entries, entry)
	}
}

// AuthenticateToken implements TokenAuthenticator. Every entry is compared, in
// constant time.
func (t *TokenFile) AuthenticateToken(_ context.Context, token string, wanted []string) (*request.User, []string, bool, error) {
	sum := sha256.Sum256([]byte(token))
	var user *request.User
	for i := range t.entries {
		if subtle.ConstantTimeCompare(t.entries[i].sum[:], sum[:]) == 1 {
			user = t.entries[i].user
		}
	}
	if user == nil {
		return nil, nil, false, nil
	}
	audiences, err := ForAPI(t.audiences, wanted)
	if err != nil {
		return nil, nil, false, err
	}
	return user, audiences, true, nil
}
