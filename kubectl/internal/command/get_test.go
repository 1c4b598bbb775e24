package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A path is asked for as it was typed, also `?verbose`, which has no value.
func TestGetRaw(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		fmt.Fprintf(w, "%s %t %q", r.URL.Path, query.Has("verbose"), query["exclude"])
	}))
	t.Cleanup(server.Close)
	c := kctl(t, server.URL, "", "get", "--raw=/livez?verbose&exclude=etcd&exclude=ping")
	c.want(t, exitOK)
	if got, want := c.out.String(), `/livez true ["etcd" "ping"]`; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
}
