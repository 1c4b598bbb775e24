package podruntime

import (
	"fmt"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/proto/core"
)

// features are what the runtime says that it supports.
type features struct {
	handlers     map[string]*runtimeapi.RuntimeHandlerFeatures // by name; "" is the default
	strictGroups bool
}

// Learn updates what the runtime says about itself: a newer version may have
// replaced it.
func (m *Manager) Learn(status *runtimeapi.StatusResponse) {
	can := &features{
		handlers:     map[string]*runtimeapi.RuntimeHandlerFeatures{},
		strictGroups: status.GetFeatures().GetSupplementalGroupsPolicy(),
	}
	for _, handler := range status.GetRuntimeHandlers() {
		can.handlers[handler.GetName()] = handler.GetFeatures()
	}
	m.features.Store(can)
}

func (m *Manager) can() *features {
	if can := m.features.Load(); can != nil {
		return can
	}
	return &features{} // nothing was said
}

// CheckImageVolumes says why a runtime, named as in the node's status
// (containerd://2.1.0), can't provide a pod's image volumes. Runtimes that are
// too old would not report an error, but mount something else.
func CheckImageVolumes(pod *core.Pod, runtime string) error {
	name, version, _ := strings.Cut(runtime, "://")
	needed, known := map[string][2]int{"containerd": {2, 1}, "cri-o": {1, 31}}[name]
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor); err != nil || !known {
		return nil // another runtime, or a custom build: it has to report errors itself
	}
	if major > needed[0] || major == needed[0] && minor >= needed[1] {
		return nil
	}
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Image != nil {
			return fmt.Errorf("volume %q: image volumes are not supported by the container runtime, %s %s; they need %d.%d or newer",
				pod.Spec.Volumes[i].Name, name, version, needed[0], needed[1])
		}
	}
	return nil
}
