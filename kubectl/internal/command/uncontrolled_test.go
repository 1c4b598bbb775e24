package command

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Whoever creates a deployment on a server of ours is told that nothing will make its pods,
// unless there is a sign of a controller that does.
func TestAWorkloadThatNoControllerTakesUp(t *testing.T) {
	const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default","generation":1},"spec":{"replicas":1%s}}`
	const apps = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[
	  {"resource":"deployments","responseKind":{"group":"apps","version":"v1","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["get","create","patch"]}]}]}]}`
	const warning = `Warning: deployment "d" has no pods yet, and this cluster shows no sign of a kube-controller-manager`
	for name, test := range map[string]struct {
		version, status string
		there           string // what exists beside it
		warned          bool
	}{
		"nobody there":          {version: "v1.37.2+kctl-0.1.0", warned: true},
		"a leader":              {version: "v1.37.2+kctl-0.1.0", there: "/leases/kube-controller-manager"},
		"one without elections": {version: "v1.37.2+kctl-0.1.0", there: "/serviceaccounts/deployment-controller"},
		"taken up at once":      {version: "v1.37.2+kctl-0.1.0", status: `},"status":{"observedGeneration":1`},
		"upstream's server":     {version: "v1.37.2"},
	} {
		t.Run(name, func(t *testing.T) {
			host := serveAPIs(t, apps, func(w http.ResponseWriter, r *http.Request) {
				switch path := r.URL.Path; {
				case path == "/version":
					fmt.Fprintf(w, `{"gitVersion":%q}`, test.version)
				case r.Method == http.MethodPost || r.Method == http.MethodPatch:
					_, _ = io.Copy(io.Discard, r.Body)
					w.WriteHeader(http.StatusCreated)
					fmt.Fprintf(w, deployment, "")
				case strings.HasSuffix(path, "/deployments/d"):
					fmt.Fprintf(w, deployment, test.status)
				case test.there != "" && strings.HasSuffix(path, test.there):
					fmt.Fprint(w, `{"metadata":{"name":"x"}}`)
				default:
					status(http.StatusNotFound, "NotFound", "not found")(w, r)
				}
			})
			for said, args := range map[string][]string{
				"created": {"create", "deployment", "d", "--image=x"}, "serverside-applied": {"apply", "--server-side", "-f", "-"},
			} {
				c := kctl(t, host, fmt.Sprintf(deployment, ""), args...)
				c.want(t, 0)
				if c.out.String() != "deployment.apps/d "+said+"\n" || strings.Contains(c.err.String(), warning) != test.warned {
					t.Errorf("printed %q and %q", c.out.String(), c.err.String())
				}
			}
		})
	}
}
