package server

import (
	"context"
	"maps"
	"sync"

	"kctl/kubelet/internal/runtimestate"
)

// sandboxImages remembers from which images sandboxes were made, which never changes.
type sandboxImages struct {
	mu    sync.Mutex
	known map[string]string // by the sandbox's id
}

// of is a sandbox's image; "" as long as the runtime does not tell it.
func (s *sandboxImages) of(ctx context.Context, runtime RuntimeStats, id string) string {
	s.mu.Lock()
	image, known := s.known[id]
	s.mu.Unlock()
	if known {
		return image
	}
	image, err := runtime.SandboxImage(ctx, id)
	if err != nil || !areNames(image) {
		return "" // it may be gone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]string{}
	}
	s.known[id] = image
	return image
}

// keep forgets all others than these.
func (s *sandboxImages) keep(pods []*runtimestate.PodStatus, networks []network) {
	there := map[string]bool{}
	for _, pod := range pods {
		for _, sandbox := range pod.Sandboxes {
			there[sandbox.ID] = true
		}
	}
	for _, one := range networks {
		there[one.id] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(id, _ string) bool { return !there[id] })
}
