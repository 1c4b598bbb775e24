package cache

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"kctl/scheduler/internal/fixture"
)

func TestImagesAreCountedByNode(t *testing.T) {
	c, s := New(clock.RealClock{}, DefaultExpiry), NewSnapshot()
	has := func(node string, names ...string) {
		c.SetImages(node, []corev1.ContainerImage{{Names: names, SizeBytes: 7}})
	}
	check := func(when, name string, nodes int64) {
		t.Helper()
		c.Update(s)
		image := s.Image(name)
		if nodes == 0 {
			if image != nil {
				t.Errorf("%s: %s is still known", when, name)
			}
			return
		}
		if image == nil || image.Nodes() != nodes || image.Size != 7 {
			t.Errorf("%s: %s is %v, want it on %d nodes", when, name, image, nodes)
		}
	}
	check("at first", "a", 0)
	for _, name := range []string{"n1", "n2"} {
		has(name, "a", "b", "b")
		c.SetNode(fixture.Node(name))
	}
	check("on both", "b", 2)
	has("n1", "b", "c")
	check("another", "a", 1)
	check("another", "b", 2)
	check("another", "c", 1)
	if node, _ := s.Node("n1"); len(node.Images) != 2 {
		t.Errorf("the snapshot has %d images of n1, want 2", len(node.Images))
	}
	c.RemoveNode("n1")
	check("n1 gone", "c", 0)
	check("n1 gone", "b", 1)
	c.RemoveNode("n2")
	check("n2 gone", "b", 0)
	if len(c.nodes) != 0 {
		t.Errorf("%d nodes are left", len(c.nodes))
	}
}
