package command

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A user who may see a pod and neither its stamps nor its events is told so: what is shown is
// not all that is known.
func TestTraceOfAUserWithFewRights(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/api/v1/namespaces/default/pods/web") {
			fmt.Fprint(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u"},"spec":{"nodeName":"n"},"status":{"phase":"Succeeded"}}`)
			return
		}
		status(http.StatusForbidden, "Forbidden", `User "bob" cannot get that`)(w, r)
	})
	c := kctl(t, host, "", "trace", "web")
	c.want(t, 0, "Warning: the programs' own times can't be shown, which takes a role for the nonResourceURL /debug/relay/*: ", "Warning: events can't be shown: ")
	if strings.Count(c.err.String(), "Warning: ") != 2 || !strings.HasPrefix(c.out.String(), "pod/web in default, on n, Succeeded") {
		t.Errorf("printed %q and %q", c.out.String(), c.err.String())
	}
}
