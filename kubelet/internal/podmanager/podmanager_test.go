package podmanager

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

func pod(uid, name string, annotations map[string]string) *core.Pod {
	return &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), Annotations: annotations}}
}

func TestMirrorPodsAreKeptApart(t *testing.T) {
	m := New()
	static := pod("s", "web", map[string]string{core.ConfigSourceAnnotation: core.FileSource, core.ConfigHashAnnotation: "h1"})
	mirror := pod("m", "web", map[string]string{core.ConfigSourceAnnotation: core.ApiserverSource, core.ConfigMirrorAnnotation: "h1"})
	m.Set(mirror)
	if got := m.OrphanedMirrors(); len(got) != 1 || got[0] != mirror {
		t.Errorf("a mirror without its pod: orphans %v", got)
	}
	m.Set(static)
	if got := m.OrphanedMirrors(); len(got) != 0 {
		t.Errorf("orphans %v, want none", got)
	}
	if m.Mirror(static) != mirror || m.PodOf(mirror) != static || m.APIPod(static) != mirror {
		t.Error("pod and mirror do not find each other")
	}
	if !IsMirrorOf(mirror, static) {
		t.Error("the mirror has the pod's hash, and is not its mirror")
	}
	if _, ok := m.ByUID("m"); ok || len(m.Pods()) != 1 {
		t.Error("the mirror counts as a pod")
	}
	changed := pod("s2", "web", map[string]string{core.ConfigSourceAnnotation: core.FileSource, core.ConfigHashAnnotation: "h2"})
	if IsMirrorOf(mirror, changed) {
		t.Error("a mirror of another hash counts as the pod's")
	}
}

// A pod may be replaced by another with the same name before its removal is
// seen.
func TestRemoveLeavesTheNameToItsNewOwner(t *testing.T) {
	m := New()
	old, new := pod("1", "web", nil), pod("2", "web", nil)
	m.Set(old)
	m.Set(new)
	m.Remove(old)
	if got, ok := m.ByName("ns", "web"); !ok || got != new {
		t.Errorf("ByName = %v, want the new pod", got)
	}
	if m.APIPod(new) != new {
		t.Error("a pod of the API is not its own API pod")
	}
}
