package runtimestate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// Upstream's kubelet labels containers with their hash. If ours were different,
// we would restart all containers of a node that we take over.
func TestHashIsUpstreams(t *testing.T) {
	c := &core.Container{Name: "test_container", Image: "foo/image:v1"}
	if got := HashContainer(c); got != 0x8e45cbd0 {
		t.Errorf("HashContainer = %#x", got)
	}
	changed := c.DeepCopy()
	changed.Env = []corev1.EnvVar{{Name: "A", Value: "1"}}
	if HashContainer(changed) != HashContainer(c) {
		t.Error("the environment changes the hash")
	}
	if changed.Image = "foo/image:v2"; HashContainer(changed) == HashContainer(c) {
		t.Error("the image does not change the hash")
	}
}
