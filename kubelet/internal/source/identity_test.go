package source

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

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
		"defaults spelled out": {manifest + "    imagePullPolicy: IfNotPresent\n  restartPolicy: Always\n  dnsPolicy: ClusterFirst\n", "node-1", "/m/web.yaml",
			true},
		"another image": {strings.Replace(manifest, "app:1", "app:2", 1), "node-1", "/m/web.yaml", false},
		"a label":       {strings.Replace(manifest, "name: web", "name: web\n  labels: {a: b}", 1), "node-1", "/m/web.yaml", false},
		"another node":  {manifest, "node-2", "/m/web.yaml", false},
		"another file":  {manifest, "node-1", "/m/web2.yaml", false},
	} {
		if got := uid(c.text, c.node, c.path); (got == first) != c.same {
			t.Errorf("%s: %s, was %s", name, got, first)
		}
	}
	if got := uid(strings.Replace(manifest, "name: web", "name: web\n  uid: mine", 1), "node-1", "/m/web.yaml"); got != "mine" {
		t.Errorf("the manifest's own UID became %s", got)
	}
}

// A manifest that is a copy of a pod of the API, with its UID, must not take the pod's containers
// away: the API has precedence, before and after.
func TestAManifestWithAPodsUID(t *testing.T) {
	m := NewMux(clock.RealClock{}, zap.NewNop())
	copied, other := apiPod("a", func(p *core.Pod) { p.Name = "copy" }), apiPod("x", nil)
	for _, step := range []struct {
		source string
		pods   []*core.Pod
		want   []string
	}{
		{core.FileSource, []*core.Pod{copied, other}, []string{"ADD:a,x"}},
		{core.HTTPSource, []*core.Pod{other}, []string{"ADD:"}},
		{core.ApiserverSource, []*core.Pod{apiPod("a", nil), apiPod("b", nil)}, []string{"REMOVE:a", "ADD:a,b"}},
		{core.FileSource, []*core.Pod{copied, other}, nil},
		{core.FileSource, []*core.Pod{copied}, []string{"REMOVE:x"}},
		{core.HTTPSource, []*core.Pod{other}, []string{"ADD:x"}},
		{core.ApiserverSource, []*core.Pod{apiPod("b", nil)}, []string{"REMOVE:a"}},
		{core.FileSource, []*core.Pod{copied, other}, []string{"REMOVE:x", "ADD:a,x"}},
	} {
		m.Set(t.Context(), step.source, step.pods)
		if got := taken(m); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.source, got, step.want)
		}
	}
}

// Nor does it take them away when the kubelet starts again and hears the API last. Once the API
// was heard, it says which pods are its own.
func TestAManifestWithTheUIDOfAPodThatRuns(t *testing.T) {
	m := NewMux(clock.RealClock{}, zap.NewNop())
	m.Expect(core.ApiserverSource, map[types.UID]bool{"a": true, "b": true})
	manifests := []*core.Pod{apiPod("a", nil), apiPod("b", nil), apiPod("x", nil)}
	for _, step := range []struct {
		source string
		pods   []*core.Pod
		want   []string
	}{
		{core.FileSource, manifests, []string{"ADD:x"}},
		{core.ApiserverSource, []*core.Pod{apiPod("a", nil)}, []string{"ADD:a"}},
		{core.FileSource, manifests, []string{"ADD:b"}},
	} {
		m.Set(t.Context(), step.source, step.pods)
		if step.source == core.ApiserverSource { // the runtime can answer later than the API
			m.Expect(core.ApiserverSource, map[types.UID]bool{"a": true, "b": true})
		}
		if got := taken(m); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.source, got, step.want)
		}
	}
}

// What the kubelet makes for a pod has its UID in its name.
func TestUIDsThatAreTooLong(t *testing.T) {
	for n, ok := range map[int]bool{maxUID: true, maxUID + 1: false, 1 << 20: false} {
		pods, err := decodePods([]byte(strings.Replace(manifest, "name: web", "name: web\n  uid: "+strings.Repeat("u", n), 1)))
		if err != nil {
			t.Fatal(err)
		}
		if err := complete(pods[0], origin{source: core.FileSource, location: "/m", nodeName: "node-1"}); (err == nil) != ok || err != nil && len(err.Error()) > 200 {
			t.Errorf("a UID of %d bytes: %v", n, err)
		}
	}
}
