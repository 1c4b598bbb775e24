package clientauth

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"

	"kctl/proto/pki"
)

// HeaderNames are the headers in which a proxy names the user.
type HeaderNames struct{ Username, UID, Group, ExtraPrefix []string }

// CommonHeaderNames are those that most proxies use. They are always removed at
// authentication, whatever a server accepts, because a server behind it may
// accept them.
var CommonHeaderNames = HeaderNames{
	Username: []string{"X-Remote-User"}, UID: []string{"X-Remote-Uid"}, Group: []string{"X-Remote-Group"},
	ExtraPrefix: []string{"X-Remote-Extra-"},
}

// Remove removes the headers, and those that a server behind may take for them: gateways
// to programs (CGI, WSGI) turn each dash into an underscore, and some (lighttpd) any other
// sign, too.
func (n HeaderNames) Remove(header http.Header) {
	for name := range header {
		if n.stands(name) {
			delete(header, name)
		}
	}
}

func (n HeaderNames) stands(name string) bool {
	for _, names := range [][]string{n.Username, n.UID, n.Group} {
		if slices.ContainsFunc(names, func(own string) bool { return len(name) == len(own) && beginsLike(name, own) }) {
			return true
		}
	}
	return slices.ContainsFunc(n.ExtraPrefix, func(prefix string) bool { return beginsLike(name, prefix) })
}

// RemoveClaims removes the headers in which a client says who it is, or wants to be. A
// proxy must not pass them on.
func RemoveClaims(header http.Header) {
	header.Del("Authorization")
	CommonHeaderNames.Remove(header)
	for name := range header {
		if beginsLike(name, "Impersonate-") {
			delete(header, name)
		}
	}
}

// beginsLike reports whether a header's name has a prefix, in either case, and perhaps with
// other signs for dashes.
func beginsLike(name, prefix string) bool {
	if len(name) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if fold(name[i]) != fold(prefix[i]) {
			return false
		}
	}
	return true
}

func fold(b byte) byte {
	switch {
	case 'a' <= b && b <= 'z', '0' <= b && b <= '9':
		return b
	case 'A' <= b && b <= 'Z':
		return b + 'a' - 'A'
	}
	return '-'
}

// RequestHeader authenticates requests that a proxy forwards: the proxy shows a
// client certificate of its own authority and names the user in headers
// (Kubernetes docs, "Authenticating Proxy").
type RequestHeader struct {
	proxies *Verifier[proxy]
	names   HeaderNames
}

// proxy is all that is known of a proxy: that it may name users.
type proxy struct{}

// NewRequestHeader trusts proxies whose certificate is from the authorities and
// has one of the allowed common names, or any name if none is given.
func NewRequestHeader(authorities *pki.Authorities, allowed []string, names HeaderNames, clock clock.PassiveClock) *RequestHeader {
	return &RequestHeader{names: names, proxies: NewVerifier(authorities, clock,
		func(leaf *x509.Certificate, _ [sha256.Size]byte) (*proxy, error) {
			if len(allowed) > 0 && !slices.Contains(allowed, leaf.Subject.CommonName) {
				return nil, fmt.Errorf("certificate of %q: not in --requestheader-allowed-names", leaf.Subject.CommonName)
			}
			return &proxy{}, nil
		})}
}

// Authenticate returns the user whom a proxy names. One that names no user makes the
// request itself, for which the answer is false, as for a client without a certificate.
func (h *RequestHeader) Authenticate(r *http.Request) (*authenticationv1.UserInfo, bool, error) {
	name := first(r.Header, h.names.Username)
	if name == "" {
		return nil, false, nil
	}
	proxy, err := h.proxies.Verify(r)
	if err != nil {
		return nil, false, fmt.Errorf("user named in a header: %w", err)
	}
	if proxy == nil {
		return nil, false, nil
	}
	user := &authenticationv1.UserInfo{Username: name, UID: first(r.Header, h.names.UID)}
	for _, header := range h.names.Group {
		for _, group := range r.Header.Values(header) {
			if group != "" {
				user.Groups = append(user.Groups, group)
			}
		}
	}
	user.Extra = h.extra(r.Header)
	return user, true, nil
}

func first(header http.Header, names []string) string {
	for _, name := range names {
		if value := strings.TrimSpace(header.Get(name)); value != "" {
			return value
		}
	}
	return ""
}

func (h *RequestHeader) extra(header http.Header) map[string]authenticationv1.ExtraValue {
	extra := map[string]authenticationv1.ExtraValue{}
	for _, prefix := range h.names.ExtraPrefix {
		for name, values := range header {
			if !hasPrefix(name, prefix) {
				continue
			}
			key := strings.ToLower(name[len(prefix):])
			if unescaped, err := url.PathUnescape(key); err == nil {
				key = unescaped
			}
			extra[key] = append(extra[key], values...)
		}
	}
	return extra
}

func hasPrefix(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}
