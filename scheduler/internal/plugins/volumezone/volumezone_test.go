package volumezone

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
	"kctl/scheduler/internal/volumes"
)

func TestFilter(t *testing.T) {
	pod := fixture.Pod("p", func(p *core.Pod) {
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "a"}}}}
	})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}}
	const zone, beta = corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone
	for name, test := range map[string]struct {
		volume map[string]string
		node   []func(*core.Node)
		fits   bool
	}{
		"says nothing":          {nil, []func(*core.Node){fixture.Label(zone, "a")}, true},
		"same zone":             {map[string]string{zone: "a"}, []func(*core.Node){fixture.Label(zone, "a")}, true},
		"another zone":          {map[string]string{zone: "a"}, []func(*core.Node){fixture.Label(zone, "b")}, false},
		"one of its zones":      {map[string]string{zone: "a__b"}, []func(*core.Node){fixture.Label(zone, "b")}, true},
		"old label, new node":   {map[string]string{beta: "a"}, []func(*core.Node){fixture.Label(zone, "a")}, true},
		"old label, another":    {map[string]string{beta: "a"}, []func(*core.Node){fixture.Label(zone, "b")}, false},
		"new label, old node":   {map[string]string{zone: "a"}, []func(*core.Node){fixture.Label(beta, "a")}, false},
		"node says nothing":     {map[string]string{zone: "a"}, nil, true},
		"node says region only": {map[string]string{zone: "a"}, []func(*core.Node){fixture.Label(corev1.LabelTopologyRegion, "r")}, false},
		"zone fits, region not": {map[string]string{zone: "a", corev1.LabelTopologyRegion: "r"},
			[]func(*core.Node){fixture.Label(zone, "a"), fixture.Label(corev1.LabelTopologyRegion, "s")}, false},
		"label without a value":  {map[string]string{zone: ""}, []func(*core.Node){fixture.Label(zone, "b")}, true},
		"label with a gap":       {map[string]string{zone: "a____b"}, []func(*core.Node){fixture.Label(zone, "c")}, true},
		"label of another thing": {map[string]string{"team": "a"}, []func(*core.Node){fixture.Label(zone, "b")}, true},
	} {
		known := volumes.NewKnown(claim, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", Labels: test.volume}})
		if status := plugintest.Filter(t.Context(), New(known), pod, fixture.NodeInfo(fixture.Node("n", test.node...))); status.IsSuccess() != test.fits {
			t.Errorf("%s: %v", name, status.Reasons())
		}
		// A profile may disable PreFilter.
		node := fixture.NodeInfo(fixture.Node("n", test.node...))
		if status := New(known).Filter(t.Context(), framework.NewCycleState(nil), framework.NewPodInfo(pod), node); status.IsSuccess() != test.fits {
			t.Errorf("%s, without PreFilter: %v", name, status.Reasons())
		}
	}
	if status := plugintest.Filter(t.Context(), New(volumes.NewKnown(claim)), pod,
		fixture.NodeInfo(fixture.Node("n"))); status.Message() != `persistentvolume "v" not found` {
		t.Errorf("a volume that is gone: %q", status.Message())
	}
}
