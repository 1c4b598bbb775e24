package command

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// The history of a recent change is shown when its controller has recorded the
// change.
func TestHistoryWaitsForTheController(t *testing.T) {
	deployment := func(observed int) string {
		return fmt.Sprintf(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"default","uid":"u","generation":2,"resourceVersion":"7"},
			"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{}},"status":{"observedGeneration":%d}}`, observed)
	}
	set := func(number int) string {
		return fmt.Sprintf(`{"metadata":{"name":"web-%d","namespace":"default","annotations":{"deployment.kubernetes.io/revision":"%d"},
			"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"u","controller":true}]},"spec":{"template":{}}}`, number, number)
	}
	var remembered atomic.Bool
	host := serveWorkloads(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/replicasets"):
			sets := set(1)
			if remembered.Load() {
				sets += "," + set(2)
			}
			fmt.Fprintf(w, `{"kind":"ReplicaSetList","apiVersion":"apps/v1","metadata":{},"items":[%s]}`, sets)
		case r.URL.Query().Get("watch") != "":
			remembered.Store(true)
			fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`, deployment(2))
		case strings.HasSuffix(r.URL.Path, "/web"):
			fmt.Fprint(w, deployment(1))
		default:
			fmt.Fprintf(w, `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"7"},"items":[%s]}`, deployment(1))
		}
	})
	c := kctl(t, host, "", "rollout", "history", "deployment/web")
	c.want(t, 0)
	if want := "REVISION  CHANGE-CAUSE\n1         <none>\n2         <none>\n"; !strings.Contains(c.out.String(), want) {
		t.Errorf("got\n%s\nwant\n%s", c.out.String(), want)
	}
}

// Rolling back what was applied warns that the next apply does not know of it.
func TestUndoOfWhatWasApplied(t *testing.T) {
	const applied = `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"default","uid":"u",
		"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{}}}`
	host := serveWorkloads(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/replicasets") {
			fmt.Fprint(w, `{"kind":"ReplicaSetList","apiVersion":"apps/v1","items":[]}`)
			return
		}
		fmt.Fprint(w, applied)
	})
	kctl(t, host, "", "rollout", "undo", "deployment/web").want(t, 1, "Warning: resource deployments/web was previously managed with 'kctl apply'. ")
}

// serveWorkloads is serve for a server with deployments and replica sets.
func serveWorkloads(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	apis := `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[
  {"resource":"deployments","responseKind":{"kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["get","list"]},
  {"resource":"replicasets","responseKind":{"kind":"ReplicaSet"},"scope":"Namespaced","singularResource":"replicaset","verbs":["get","list"]}]}]}]}`
	return serveAPIs(t, apis, answer)
}
