package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

func TestWhoEndsAPod(t *testing.T) {
	for phase, want := range map[corev1.PodPhase]bool{corev1.PodPending: true, corev1.PodRunning: true, corev1.PodFailed: false, corev1.PodSucceeded: false} {
		for node, want := range map[string]bool{"n1": want, "": false} {
			pod := minimal(func(p *core.Pod) { p.Spec.NodeName, p.Status.Phase = node, phase })
			if got := awaitsKubelet(pod); got != want {
				t.Errorf("%s on %q: %v", phase, node, got)
			}
		}
	}
}

func TestGracePeriod(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	running := func(p *core.Pod) { p.Spec.NodeName = "n1"; p.Status.Phase = corev1.PodRunning }
	for name, c := range map[string]struct {
		pod      *core.Pod
		asked    *int64
		grace    int64
		graceful bool
	}{
		"unscheduled":           {minimal(), nil, 0, false},
		"unscheduled, 10 asked": {minimal(), seconds(10), 0, false},
		"running":               {minimal(running), nil, 30, true},
		"running, 5 asked":      {minimal(running), seconds(5), 5, true},
		"running, 0 asked":      {minimal(running), seconds(0), 0, false},
		"running, -1 asked":     {minimal(running), seconds(-1), 1, true},
		"ended":                 {minimal(running, func(p *core.Pod) { p.Status.Phase = corev1.PodSucceeded }), nil, 0, false},
		"negative in the spec":  {minimal(running, func(p *core.Pod) { p.Spec.TerminationGracePeriodSeconds = seconds(-7) }), nil, 1, true},
		"already ending, asked again": {minimal(running, func(p *core.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{}, seconds(60)
		}), nil, 60, true},
		"already ending, grace period cut short": {minimal(running, func(p *core.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{}, seconds(60)
		}), seconds(2), 2, true},
		"already ending, by the kubelet": {minimal(running, func(p *core.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{}, seconds(60)
		}), seconds(0), 0, false},
	} {
		grace, graceful := gracePeriod(c.pod, c.asked)
		if grace != c.grace || graceful != c.graceful {
			t.Errorf("%s: %d, %t; want %d, %t", name, grace, graceful, c.grace, c.graceful)
		}
	}
}
