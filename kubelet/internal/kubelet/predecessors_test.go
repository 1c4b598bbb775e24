package kubelet

import (
	"os"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// replacesStaticPod changes a manifest while neither the kubelet nor the API
// runs. The next kubelet starts the new pod after the old one's end, even
// though it can't ask the API for its other pods.
func (b *bed) replacesStaticPod(path string) {
	b.t.Helper()
	running := func() (ids []string) {
		containers, err := b.containerd.Client().ListContainers(b.t.Context(), &runtimeapi.ContainerFilter{
			State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
		})
		if err != nil {
			b.t.Fatal(err)
		}
		for _, c := range containers {
			ids = append(ids, c.GetId())
		}
		return ids
	}
	before := running()
	b.stop()
	b.api.setAway(true)
	changed := strings.Replace(staticManifest, "exit 0", "exit 1", 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.start()
	b.eventually("the changed static pod alone", func() bool {
		now := running()
		if len(now) > 1 {
			b.t.Fatalf("containers %v run beside each other; the one from before is %v", now, before)
		}
		return len(now) == 1 && now[0] != before[0]
	})
	b.api.setAway(false)
	b.api.wait("the mirror of the changed pod", func() bool { return b.api.pod("static-node-1") != nil })
}
