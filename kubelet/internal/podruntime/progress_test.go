package podruntime

import (
	"strings"
	"testing"

	"kctl/kubelet/internal/runtimestate"
)

// A hook that failed is named with its whole command. A status of hundreds of kilobytes
// for each container is one that the API does not take.
func TestReasonsOfWaitingAreShort(t *testing.T) {
	s := &podSync{waiting: map[string]runtimestate.Waiting{}}
	s.wait("main", runtimestate.ReasonPostStartHook, "exec hook "+strings.Repeat("x", 1<<20)+" exited with 7", 0)
	got := s.waiting["main"].Message
	if len(got) > 4096 || !strings.HasPrefix(got, "exec hook x") || !strings.HasSuffix(got, "x exited with 7") {
		t.Errorf("%d bytes: %.50q", len(got), got)
	}
}
