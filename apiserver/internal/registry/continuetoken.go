package registry

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// tokenVersion is what upstream puts into its tokens, whose format we share: a
// list begun at one server may go on at another.
const tokenVersion = "meta.k8s.io/v1"

// latest, as a token's revision, means: go on from the token's key in the present state.
const latest = -1

// continueToken is a decoded continue token.
type continueToken struct {
	Version  string `json:"v"`
	Revision int64  `json:"rv"`
	// Start is the next key, without the collection's prefix; upstream puts a slash before it.
	Start string `json:"start"`
}

// encodeToken makes the token that goes on after key.
func encodeToken(prefix, key string, revision int64) (string, error) {
	text, err := json.Marshal(continueToken{Version: tokenVersion, Revision: revision, Start: strings.TrimPrefix(key, prefix) + "\x00"})
	if err != nil {
		return "", fmt.Errorf("encode continue: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(text), nil
}

// decodeToken returns the key after which, and the revision at which, a list goes on.
func decodeToken(prefix, text string) (after string, revision int64, err error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", 0, invalidToken(err.Error())
	}
	var t continueToken
	switch err := json.Unmarshal(data, &t); {
	case err != nil:
		return "", 0, invalidToken(err.Error())
	case t.Version != tokenVersion:
		return "", 0, invalidToken("server does not recognize this encoded version " + t.Version)
	case t.Revision == 0 || t.Revision < latest:
		return "", 0, invalidToken("incorrect encoded start resourceVersion (version " + tokenVersion + ")")
	}
	if t.Start == "" {
		return "", 0, invalidToken("encoded start key empty (version " + tokenVersion + ")")
	}
	start, ok := strings.CutSuffix(strings.TrimPrefix(t.Start, "/"), "\x00")
	if !ok || start == "" || path.Clean("/"+start) != "/"+start {
		return "", 0, invalidToken(fmt.Sprintf("%q", t.Start))
	}
	return prefix + start, t.Revision, nil
}

func invalidToken(why string) error {
	return apierrors.NewBadRequest("invalid continue token: continue key is not valid: " + why)
}
