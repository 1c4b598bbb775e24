package bootstraptoken

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// userPrefix is before the id in the name of a token's user.
const userPrefix = "system:bootstrap:"

var (
	errBeingDeleted = errors.New("its secret is being deleted")
	errWrongID      = errors.New("its secret has a different id")
	errWrongSecret  = errors.New("the secret part is wrong")
	errExpired      = errors.New("it has expired")
	errWrongUsage   = errors.New("it can't be used for authentication")
)

// userOfSecret returns the user of a token, according to its secret, or why there is none.
func userOfSecret(s *core.Secret, id, secret string, now time.Time) (*request.User, error) {
	switch {
	case s.DeletionTimestamp != nil:
		return nil, errBeingDeleted
	case s.Type != corev1.SecretTypeBootstrapToken || s.Name != core.BootstrapTokenSecretPrefix+id ||
		string(s.Data[core.BootstrapTokenID]) != id:
		return nil, errWrongID
	case subtle.ConstantTimeCompare(s.Data[core.BootstrapTokenSecret], []byte(secret)) != 1:
		return nil, errWrongSecret
	}
	until, limited, err := core.BootstrapTokenExpiry(s)
	if err != nil {
		return nil, err
	}
	if limited && !now.Before(until) {
		return nil, errExpired
	}
	if string(s.Data[core.BootstrapTokenUsagePrefix+core.BootstrapUsageAuthentication]) != "true" {
		return nil, errWrongUsage
	}
	groups, err := groupsOf(s)
	if err != nil {
		return nil, err
	}
	return &request.User{Username: userPrefix + id, Groups: groups}, nil
}

func groupsOf(s *core.Secret) ([]string, error) {
	groups := []string{core.GroupBootstrappers}
	for extra := range strings.SplitSeq(string(s.Data[core.BootstrapTokenGroups]), ",") {
		extra = strings.TrimSpace(extra)
		switch {
		case extra == "" || slices.Contains(groups, extra):
		case !core.IsBootstrapGroup(extra):
			return nil, fmt.Errorf("group %q is not one of %s:NAME", extra, core.GroupBootstrappers)
		default:
			groups = append(groups, extra)
		}
	}
	return groups, nil
}
