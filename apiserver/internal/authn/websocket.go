package authn

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"kctl/apiserver/internal/request"
)

// How a browser, which can't set headers on a WebSocket, brings its token: as
// one of the subprotocols that it offers, beside a real one (Kubernetes API
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
	errOnlyToken     = errors.New("WebSocket subprotocols: a real one is needed beside the token")
)

// Authenticate implements Authenticator. The token's protocol is removed, so
// that nobody agrees to it and nobody behind sees it.
func (w WebSocket) Authenticate(r *http.Request) (*request.User, bool, error) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return nil, false, nil
	}
	token, others, err := splitProtocols(r.Header.Values(protocolHeader))
	if err != nil || token == "" {
		return nil, false, err
	}
	user, _, ok, err := w.Tokens.AuthenticateToken(r.Context(), token, nil)
	if err != nil {
		return nil, false, err
	}
	if !ok {
		return nil, false, ErrInvalidToken
	}
	r.Header.Set(protocolHeader, strings.Join(others, ","))
	return user, true, nil
}

func splitProtocols(values []string) (token string, others []string, err error) {
	for _, value := range values {
		for protocol := range strings.SplitSeq(value, ",") {
			protocol = strings.TrimSpace(protocol)
			encoded, ok := strings.CutPrefix(protocol, tokenProtocol)
			if !ok {
				others = append(others, protocol)
				continue
			}
			decoded, err := base64.RawURLEncoding.DecodeString(encoded)
			if err != nil || len(decoded) == 0 || !utf8.Valid(decoded) {
				return "", nil, errProtocolToken
			}
			if token != "" {
				return "", nil, errTwoTokens
			}
			token = string(decoded)
		}
	}
	if token != "" && len(others) == 0 {
		return "", nil, errOnlyToken
	}
	return token, others, nil
}
