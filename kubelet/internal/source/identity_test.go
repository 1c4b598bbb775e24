package source

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// A static pod's UID depends on the same things as kubelet 1.37's, as measured.
func TestWhatMakesAStaticPodAnother(t *testing.T) {
	uid := func(text, node, path string) types.UID {
		t.Helper()
		pods, err := decodePods([]byte(text))
		if err == nil {
			err = complete(pods[0], origin{source: core.FileSource, location: path, nodeName: node})
		}
		if err != nil {
			t.Fatal(err)
		}
		return pods[0].UID
	}
	first := uid(manifest, "node-1", "/m/web.yaml")
	for name, c := range map[string]struct {
		text, node, path string
		same             bool
	}{
		"read again":             {manifest, "node-1", "/m/web.yaml", true},
		"a comment":              {"# why\n" + manifest, "node-1", "/m/web.yaml", true},
		"JSON, in another order": {`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"resources":{"limits":{"cpu":"100m"}},"image":"registry.example/app:1","name":"app"}]},"metadata":{"name":"web"}}`, "node-1", "/m/web.yaml", true},
		"defaults spelled out":   {manifest + "    imagePullPolicy: IfNotPresent\n  restartPolicy: Always\n  dnsPolicy: ClusterFirst\n", "node-1", "/m/web.yaml", true},
		"another image":          {strings.Replace(manifest, "app:1", "app:2", 1), "node-1", "/m/web.yaml", false},
		"a label":                {strings.Replace(manifest, "name: web", "name: web\n  labels: {a: b}", 1), "node-1", "/m/web.yaml", false},
		"another node":           {manifest, "node-2", "/m/web.yaml", false},
		"another file":           {manifest, "node-1", "/m/web2.yaml", false},
	} {
		if got := uid(c.text, c.node, c.path); (got == first) != c.same {
			t.Errorf("%s: %s, was %s", name, got, first)
		}
	}
	if got := uid(strings.Replace(manifest, "name: web", "name: web\n  uid: mine", 1), "node-1", "/m/web.yaml"); got != "mine" {
		t.Errorf("the manifest's own UID became %s", got)
	}
}
