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

// A dry run of a rollback shows the template that it would bring back, of what is paused,
// too, and asks the server for nothing but what it reads.
func TestUndoAsADryRun(t *testing.T) {
	const deployment = `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"default","uid":"u"},"spec":{"paused":true,"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"containers":[{"name":"c","image":"new"}]}}}}`
	set := func(number int, image string) string {
		return fmt.Sprintf(`{"metadata":{"name":"web-%d","namespace":"default","annotations":{"deployment.kubernetes.io/revision":"%[1]d"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"u","controller":true}]},
			"spec":{"template":{"metadata":{"labels":{"a":"b","pod-template-hash":"h"}},"spec":{"containers":[{"name":"c","image":%q}]}}}}`, number, image)
	}
	host := serveWorkloads(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s in a dry run", r.Method, r.URL)
		}
		if strings.HasSuffix(r.URL.Path, "/replicasets") {
			fmt.Fprintf(w, `{"kind":"ReplicaSetList","apiVersion":"apps/v1","items":[%s,%s]}`, set(1, "old"), set(2, "new"))
			return
		}
		fmt.Fprint(w, deployment)
	})
	c := kctl(t, host, "", "rollout", "undo", "deployment/web", "--dry-run=client")
	c.prints(t,
		"deployment.apps/web Pod Template:\n  Labels:\ta=b\n\tpod-template-hash=h\n  Containers:\n   c:\n    Image:\told\n    Port:\t<none>\n    Host "+
			"Port:\t<none>\n    Environment:\t<none>\n    Mounts:\t<none>\n  Volumes:\t<none>\n  Node-Selectors:\t<none>\n  Tolerations:\t<none>\n (dry run)\n")
	kctl(t, host, "", "rollout", "undo", "deployment/web").want(t, 1, "you cannot rollback a paused deployment")
	c = kctl(t, host, "", "rollout", "history", "deployment/web", "--revision=1")
	c.prints(t,
		"deployment.apps/web with revision #1\nPod Template:\n  Labels:\ta=b\n\tpod-template-hash=h\n  Containers:\n   c:\n    Image:\told\n    Port:\t<none>\n    "+
			"Host Port:\t<none>\n    Environment:\t<none>\n    Mounts:\t<none>\n  Volumes:\t<none>\n  Node-Selectors:\t<none>\n  Tolerations:\t<none>\n\n")
}

// serveWorkloads is serve for a server with deployments and replica sets.
func serveWorkloads(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	apis := `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[
  {"resource":"deployments","responseKind":{"kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["get","list"]},
  {"resource":"replicasets","responseKind":{"kind":"ReplicaSet"},"scope":"Namespaced","singularResource":"replicaset","verbs":["get","list"]}]}]}]}`
	return serveAPIs(t, apis, answer)
}
