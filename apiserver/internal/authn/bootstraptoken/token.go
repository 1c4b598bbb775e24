package bootstraptoken

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// SecretType is the type of the secrets that hold tokens.
const SecretType corev1.SecretType = "bootstrap.kubernetes.io/token"

// The name of a token's secret, and the keys of its data.
const (
	secretPrefix  = "bootstrap-token-"
	keyID         = "token-id"
	keySecret     = "token-secret"
	keyExpiration = "expiration"
	keyUsage      = "usage-bootstrap-authentication"
	keyGroups     = "auth-extra-groups"
)

// A token's user is named by its id, and is in the group of all such users.
const (
	userPrefix = "system:bootstrap:"
	group      = "system:bootstrappers"
)

var (
	tokenPattern = regexp.MustCompile(`\A([a-z0-9]{6})\.([a-z0-9]{16})\z`)
	groupPattern = regexp.MustCompile(`\Asystem:bootstrappers:[a-z0-9:-]*[a-z0-9]\z`)
)

// maxGroup bounds groups. A count in the pattern would cost milliseconds at each start.
const maxGroup = len(group+":") + 256

var (
	errBeingDeleted = errors.New("its secret is being deleted")
	errWrongID      = errors.New("its secret has another id")
	errWrongSecret  = errors.New("the secret part is wrong")
	errExpired      = errors.New("it has run out")
	errWrongUsage   = errors.New("it is not for authentication")
)

// userOfSecret returns the user of a token, according to its secret, or why there is none.
func userOfSecret(s *core.Secret, id, secret string, now time.Time) (*request.User, error) {
	switch {
	case s.DeletionTimestamp != nil:
		return nil, errBeingDeleted
	case s.Type != SecretType || s.Name != secretPrefix+id || string(s.Data[keyID]) != id:
		return nil, errWrongID
	case len(s.Data[keySecret]) == 0 || subtle.ConstantTimeCompare(s.Data[keySecret], []byte(secret)) != 1:
		return nil, errWrongSecret
	}
	until, limited, err := Expiry(s)
	if err != nil {
		return nil, err
	}
	if limited && !now.Before(until) {
		return nil, errExpired
	}
	if string(s.Data[keyUsage]) != "true" {
		return nil, errWrongUsage
	}
	groups, err := groupsOf(s)
	if err != nil {
		return nil, err
	}
	return &request.User{Username: userPrefix + id, Groups: groups}, nil
}

// Expiry is when a token expires according to its secret; limited is false if
// it never does. An unreadable time is an error, and such a token counts as
// expired.
func Expiry(s *core.Secret) (until time.Time, limited bool, err error) {
	text := string(s.Data[keyExpiration])
	if text == "" {
		return time.Time{}, false, nil
	}
	until, err = time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, true, errors.New("its expiration is not a time of RFC 3339")
	}
	return until, true, nil
}

func groupsOf(s *core.Secret) ([]string, error) {
	groups := []string{group}
	for extra := range strings.SplitSeq(string(s.Data[keyGroups]), ",") {
		extra = strings.TrimSpace(extra)
		switch {
		case extra == "" || slices.Contains(groups, extra):
		case len(extra) > maxGroup || !groupPattern.MatchString(extra):
			return nil, fmt.Errorf("group %q is not one of %s:NAME", extra, group)
		default:
			groups = append(groups, extra)
		}
	}
	return groups, nil
}
