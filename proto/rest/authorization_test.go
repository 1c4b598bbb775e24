package rest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestAuthorization: a token, or a user name and password, is added to what says nothing itself.
func TestAuthorization(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	for _, test := range []struct {
		cfg       Config
		own, want string
	}{
		{Config{}, "", ""},
		{Config{BearerToken: "t"}, "", "Bearer t"},
		{Config{BearerToken: "t"}, "Bearer mine", "Bearer mine"},
		{Config{Username: "u", Password: "p"}, "", "Basic dTpw"},
	} {
		test.cfg.Host = server.URL
		client, err := New(&test.cfg)
		if err != nil {
			t.Fatal(err)
		}
		for name, transport := range map[string]http.RoundTripper{
			"the client": client.HTTP().Transport, "another transport": test.cfg.Authorize(http.DefaultTransport),
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			if test.own != "" {
				r.Header.Set("Authorization", test.own)
			}
			response, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(response.Body)
			if err != nil || string(said) != test.want {
				t.Errorf("%s with %+v said %q, %v", name, test.cfg, said, err)
			}
			_ = response.Body.Close()
		}
	}
}
