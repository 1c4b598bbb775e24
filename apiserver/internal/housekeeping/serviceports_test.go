package housekeeping

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry/registrytest"
	"kctl/apiserver/internal/resources/service"
	"kctl/proto/core"
)

// TestNodePortProblemsAreToldOnce: each is an event when it is found, not in each round; a failed round is repeated.
func TestNodePortProblemsAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := withAddress("web", "10.0.0.1")
		taken := service.PortProblem{Port: 30001, Service: web, Reason: "PortAlreadyAllocated", Message: "Port 30001 …"}
		far := service.PortProblem{Port: 20000, Service: web, Reason: "PortOutOfRange", Message: "Port 20000 …"}
		rounds := [][]service.PortProblem{nil, {taken}, {taken, far}, {{Port: 30002, Message: "leaked"}}, {taken}}
		happened := registrytest.New(core.Events)
		next := 0
		s := &servicePorts{events: happened, clock: clock.RealClock{}, logger: zap.NewNop()}
		s.compare = func(context.Context) ([]service.PortProblem, error) {
			if next++; next == 1 || next > len(rounds) {
				return nil, errors.New("no answer")
			}
			return rounds[next-1], nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := runAllOf(ctx, s.run)
		defer func() { cancel(); <-done }()
		pass(portRepairInterval*5 - 1)
		want := []string{"PortAlreadyAllocated", "PortAlreadyAllocated", "PortOutOfRange"}
		if got := told(t, happened); next != len(rounds) || !slices.Equal(got, want) {
			t.Errorf("%d rounds told %q, not %q", next, got, want)
		}
	})
}
