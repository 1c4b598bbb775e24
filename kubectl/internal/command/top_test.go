package command

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// top shows swap if it is asked for; of a node that does not say how much it has, nothing
// is known, and of one without metrics nothing at all.
func TestTopShowsSwap(t *testing.T) {
	answers := map[string]string{
		"/apis/metrics.k8s.io/v1beta1": `{}`,
		"/apis/metrics.k8s.io/v1beta1/nodes": `{"items":[{"metadata":{"name":"one"},"usage":{"cpu":"1","memory":"1Gi","swap":"256Mi"}},
			{"metadata":{"name":"two"},"usage":{"cpu":"1","memory":"1Gi"}},{"metadata":{"name":"without"},"usage":{"cpu":"1","memory":"1Gi","swap":"0"}}]}`,
		"/api/v1/nodes": `{"items":[{"metadata":{"name":"one"},"status":{"allocatable":{"cpu":"2","memory":"4Gi"},"nodeInfo":{"swap":{"capacity":1073741824}}}},
			{"metadata":{"name":"two"},"status":{"allocatable":{"cpu":"2","memory":"4Gi"}}},
			{"metadata":{"name":"without"},"status":{"allocatable":{"cpu":"2","memory":"4Gi"},"nodeInfo":{"swap":{"capacity":0}}}},
			{"metadata":{"name":"silent"},"status":{"allocatable":{"cpu":"2","memory":"4Gi"}}}]}`,
		"/apis/metrics.k8s.io/v1beta1/namespaces/default/pods": `{"items":[{"metadata":{"name":"p","namespace":"default"},"containers":[
			{"name":"c","usage":{"cpu":"1","memory":"1Gi","swap":"2Mi"}},{"name":"d","usage":{"cpu":"1","memory":"1Gi","swap":"3Mi"}}]}]}`,
	}
	host := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, answers[r.URL.Path]) })
	for args, want := range map[string]string{
		"node": `NAME CPU(cores) CPU(%) MEMORY(bytes) MEMORY(%) one 1000m 50% 1024Mi 25% two 1000m 50% 1024Mi 25% without 1000m 50% 1024Mi 25%
			silent <unknown> <unknown> <unknown> <unknown>`,
		"node --show-swap": `NAME CPU(cores) CPU(%) MEMORY(bytes) MEMORY(%) SWAP(bytes) SWAP(%)
			one 1000m 50% 1024Mi 25% 256Mi 25% two 1000m 50% 1024Mi 25% <unknown> <unknown> without 1000m 50% 1024Mi 25% 0Mi 0%
			silent <unknown> <unknown> <unknown> <unknown> <unknown> <unknown>`,
		"pod --show-swap":              `NAME CPU(cores) MEMORY(bytes) SWAP(bytes) p 2000m 2048Mi 5Mi`,
		"pod --show-swap --containers": `POD NAME CPU(cores) MEMORY(bytes) SWAP(bytes) p c 1000m 1024Mi 2Mi p d 1000m 1024Mi 3Mi`,
		"pod --show-swap --sum":        `NAME CPU(cores) MEMORY(bytes) SWAP(bytes) p 2000m 2048Mi 5Mi ________ ________ ________ 2000m 2048Mi 5Mi`,
		"pod --sum":                    `NAME CPU(cores) MEMORY(bytes) p 2000m 2048Mi ________ ________ 2000m 2048Mi`,
	} {
		c := kctl(t, host, "", append([]string{"top"}, strings.Fields(args)...)...)
		c.want(t, 0)
		if got := strings.Join(strings.Fields(c.out.String()), " "); got != strings.Join(strings.Fields(want), " ") {
			t.Errorf("top %s:\n%s", args, c.out.String())
		}
	}
}

// A name and a selector contradict each other.
func TestTopOfANameOrASelector(t *testing.T) {
	for _, args := range []string{"node one -l a=b", "pod p -l a=b", "pod p --field-selector=a=b"} {
		kctl(t, "http://127.0.0.1:1", "", append([]string{"top"}, strings.Fields(args)...)...).want(t, 1, "error: only one of NAME or selector can be provided")
	}
}

// Metrics of no node are an error, so that a script may wait for them.
func TestTopWithoutMetrics(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"items":[]}`) })
	kctl(t, host, "", "top", "node").want(t, 1, "error: metrics not available yet")
}
