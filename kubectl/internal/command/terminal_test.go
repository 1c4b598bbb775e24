package command

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Control characters in what others wrote are shown instead of obeyed: a
// reason, an annotation or a kind's description must not overwrite what is
// printed beside it.
func TestControlCharacters(t *testing.T) {
	const evil = `\u001b]0;owned\u0007\u001b[2J`
	pod := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","namespace":"default","annotations":{"a":"` + evil + `"}},
	  "spec":{"containers":[{"name":"c","env":[{"name":"E","value":"` + evil + `"}]}]}}`
	schemas := `{"components":{"schemas":{"io.k8s.api.core.v1.Pod":{"description":"` + evil + `","type":"object",
	  "x-kubernetes-group-version-kind":[{"group":"","kind":"Pod","version":"v1"}]}}}}`
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/openapi/v3":
			fmt.Fprint(w, `{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1"}}}`)
		case strings.HasPrefix(r.URL.Path, "/openapi/v3/"):
			fmt.Fprint(w, schemas)
		case strings.HasSuffix(r.URL.Path, "/pods/x"):
			fmt.Fprint(w, pod)
		default:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":"`+evil+`"}`)
		}
	})
	for _, args := range [][]string{
		{"get", "pod", "denied"}, {"explain", "pods"}, {"annotate", "pod", "x", "--list"}, {"set", "env", "pod/x", "--list"},
	} {
		c := kctl(t, host, "", args...)
		if said := c.out.String() + c.err.String(); strings.ContainsAny(said, "\x1b\x07") || !strings.Contains(said, "^]0;owned^^[2J") {
			t.Errorf("%v: exit code %d, printed %q", args, c.code, said)
		}
	}
}
