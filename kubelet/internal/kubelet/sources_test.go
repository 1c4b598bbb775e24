package kubelet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/runtimestate"
)

// A runtime that can't list its pods at first is asked until it can: a manifest with the UID of a
// pod that runs for the API would end that pod.
func TestPodsOfTheAPIAreKnownHoweverOftenTheRuntimeFails(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	b.create(hollowPod("web", nil))
	uid := b.waitPhase("web", corev1.PodRunning).UID
	fails := 2
	uids, err := b.kubelet.apiPods(t.Context(), func(ctx context.Context) ([]*runtimestate.RunningPod, error) {
		if fails--; fails >= 0 {
			return nil, errors.New("the runtime is confused")
		}
		return b.kubelet.state.Pods(ctx)
	})
	if got := slices.Collect(maps.Keys(uids)); err != nil || !slices.Equal(got, []types.UID{uid}) {
		t.Errorf("%v, %v, want %s", got, err, uid)
	}
	ended, end := context.WithCancel(t.Context())
	if _, err := b.kubelet.apiPods(ended, func(context.Context) ([]*runtimestate.RunningPod, error) {
		end()
		return nil, errors.New("it ends first")
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("a kubelet that ends: %v", err)
	}
}
