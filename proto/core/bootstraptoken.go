package core

import (
	"errors"
	"strings"
	"time"
)

// The name of a bootstrap token's secret, before the token's id, and the keys of its data
// (Kubernetes docs, "Authenticating with Bootstrap Tokens").
const (
	BootstrapTokenSecretPrefix = "bootstrap-token-"
	BootstrapTokenID           = "token-id"
	BootstrapTokenSecret       = "token-secret"
	BootstrapTokenExpiration   = "expiration"
	BootstrapTokenDescription  = "description"
	BootstrapTokenGroups       = "auth-extra-groups"
	BootstrapTokenUsagePrefix  = "usage-bootstrap-" // before one of the usages
)

// What bootstrap tokens can be used for.
const (
	BootstrapUsageSigning        = "signing"
	BootstrapUsageAuthentication = "authentication"
)

// SplitBootstrapToken returns the two parts of a bootstrap token; ok is false if the text
// is none.
func SplitBootstrapToken(text string) (id, secret string, ok bool) {
	id, secret, _ = strings.Cut(text, ".")
	return id, secret, IsBootstrapTokenID(id) && len(secret) == 16 && consistsOf(secret, "")
}

// IsBootstrapTokenID says whether a text could be the part of a token that names it.
func IsBootstrapTokenID(text string) bool { return len(text) == 6 && consistsOf(text, "") }

// IsBootstrapGroup says whether a token may put its bearer into the group.
func IsBootstrapGroup(group string) bool {
	name, found := strings.CutPrefix(group, GroupBootstrappers+":")
	return found && 0 < len(name) && len(name) <= 256 && consistsOf(name, ":-") && consistsOf(name[len(name)-1:], "")
}

// consistsOf says whether a text has only lower-case letters, digits and the others in it.
func consistsOf(text, others string) bool {
	return strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789"+others) == ""
}

// BootstrapTokenExpiry is when a token expires according to its secret; limited is false
// if it never does. An unreadable time is an error, and such a token counts as expired.
func BootstrapTokenExpiry(s *Secret) (until time.Time, limited bool, err error) {
	text := string(s.Data[BootstrapTokenExpiration])
	if text == "" {
		return time.Time{}, false, nil
	}
	until, err = time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, true, errors.New("its expiration is not a time of RFC 3339")
	}
	return until, true, nil
}
