package authn

import (
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"kctl/apiserver/internal/request"
)

// How a browser, which can't set headers on a WebSocket, sends its token: as
// one of the subprotocols that it offers, besides a real one (Kubernetes API
// docs, "base64url.bearer.authorization.k8s.io").
const (
	protocolHeader = "Sec-WebSocket-Protocol"
	tokenProtocol  = "base64url.bearer.authorization.k8s.io."
)

// WebSocket authenticates upgrades by the token among their subprotocols.
type WebSocket struct{ Tokens TokenAuthenticator }

var (
	errProtocolToken = errors.New("WebSocket subprotocol: not a base64url token")
	errTwoTokens     = errors.New("WebSocket subprotocols: more than one token")
	errOnlyToken     = errors.New("WebSocket subprotocols: another subprotocol is required in addition to the token")
)

// RemoveTokens removes the tokens from a request, however it was authenticated, so
// that no handler sees them, or agrees to one as a protocol.
func RemoveTokens(header http.Header) {
	header.Del("Authorization")
	offered := header.Values(protocolHeader)
	if !slices.ContainsFunc(offered, func(value string) bool { return strings.Contains(value, tokenProtocol) }) {
		return
	}
	var others []string
	for _, value := range offered {
		for protocol := range strings.SplitSeq(value, ",") {
			if protocol = strings.TrimSpace(protocol); !strings.HasPrefix(protocol, tokenProtocol) {
				others = append(others, protocol)
			}
		}
	}
	header.Del(protocolHeader)
	if len(others) > 0 {
		header.Set(protocolHeader, strings.Join(others, ","))
	}
}

// Authenticate implements Authenticator.
func (w WebSocket) Authenticate(r *http.Request) (*request.User, bool, error) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return nil, false, nil
	}
	token, err := protocolToken(r.Header.Values(protocolHeader))
	if err != nil || token == "" {
		return nil, false, err
	}
	return userOf(r.Context(), w.Tokens, token)
}

// protocolToken is the token among the offered protocols; "" if there is none.
func protocolToken(offered []string) (token string, err error) {
	others := false
	for _, value := range offered {
		for protocol := range strings.SplitSeq(value, ",") {
			encoded, ok := strings.CutPrefix(strings.TrimSpace(protocol), tokenProtocol)
			if !ok {
				others = true
				continue
			}
			decoded, err := base64.RawURLEncoding.DecodeString(encoded)
			if err != nil || len(decoded) == 0 || !utf8.Valid(decoded) {
				return "", errProtocolToken
			}
			if token != "" {
				return "", errTwoTokens
			}
			token = string(decoded)
		}
	}
	if token != "" && !others {
		return "", errOnlyToken
	}
	return token, nil
}
