package command

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A user who may see a pod and not its events is told so: what is shown is not all that is
// known. A server that forbids the stamps is upstream's, which has none.
func TestTraceOfAUserWithFewRights(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/api/v1/namespaces/default/pods/web") {
			fmt.Fprint(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u"},"spec":{"nodeName":"n"},"status":{"phase":"Succeeded"}}`)
			return
		}
		status(http.StatusForbidden, "Forbidden", `User "bob" cannot get that`)(w, r)
	})
	c := kctl(t, host, "", "trace", "web")
	c.want(t, 0, "Warning: events can't be shown: ")
	if strings.Count(c.err.String(), "Warning: ") != 1 || !strings.HasPrefix(c.out.String(), "pod/web in default, on n, Succeeded") {
		t.Errorf("printed %q and %q", c.out.String(), c.err.String())
	}
}

// trace and explain-schedule take a pod as get does, and complete it so.
func TestPodsAreCompletedBehindTheirType(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"web","namespace":"default"}},{"metadata":{"name":"other","namespace":"default"}}]}`)
	})
	for args, want := range map[string]string{"trace pod w": "web\n:4\n", "explain-schedule po ": "other\nweb\n:4\n", "trace other w": ":4\n", "trace pod/other w": ":4\n"} {
		c := kctl(t, host, "", append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if c.out.String() != want {
			t.Errorf("%s: %q, want %q; %s", args, c.out.String(), want, c.err.String())
		}
	}
}
