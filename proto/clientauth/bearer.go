package clientauth

import (
	"net/http"
	"strings"
)

// BearerToken is the token in a request's Authorization header; "" if there is none.
func BearerToken(header http.Header) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	token, _, _ = strings.Cut(token, " ") // upstream looks no further, and finds nothing after two spaces
	return token
}
