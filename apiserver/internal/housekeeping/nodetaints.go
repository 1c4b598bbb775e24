package housekeeping

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// wantedTaints follow from a node's conditions; with evict, they include NoExecute
// for a node that is not ready.
func wantedTaints(node nodeState, ready corev1.ConditionStatus, evict bool) map[corev1.Taint]bool {
	wanted := map[corev1.Taint]bool{}
	add := func(key string, effects ...corev1.TaintEffect) {
		for _, effect := range effects {
			wanted[corev1.Taint{Key: key, Effect: effect}] = true
		}
	}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule}
	if evict {
		effects = append(effects, corev1.TaintEffectNoExecute)
	}
	switch ready {
	case corev1.ConditionFalse:
		add(corev1.TaintNodeNotReady, effects...)
	case corev1.ConditionUnknown:
		add(corev1.TaintNodeUnreachable, effects...)
	}
	for condition, key := range map[corev1.NodeConditionType]string{
		corev1.NodeMemoryPressure:     corev1.TaintNodeMemoryPressure,
		corev1.NodeDiskPressure:       corev1.TaintNodeDiskPressure,
		corev1.NodePIDPressure:        corev1.TaintNodePIDPressure,
		corev1.NodeNetworkUnavailable: corev1.TaintNodeNetworkUnavailable,
	} {
		if node.conditions[condition] == corev1.ConditionTrue {
			add(key, corev1.TaintEffectNoSchedule)
		}
	}
	if node.unschedulable {
		add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	}
	return wanted
}

// updateTaints adds and removes taints until they are the wanted ones.
func (n *nodeLifecycle) updateTaints(ctx context.Context, node nodeState, ready corev1.ConditionStatus, evict bool) error {
	wanted := wantedTaints(node, ready, evict)
	now := metav1.NewTime(n.clock.Now())
	if equality.Semantic.DeepEqual(node.taints, mergeTaints(node.taints, wanted, now)) {
		return nil
	}
	err := modify(ctx, n.store, registry.Target{Name: node.name}, func(current core.Object) (core.Object, error) {
		spec := &current.(*core.Node).Spec
		spec.Taints = mergeTaints(spec.Taints, wanted, now)
		return current, nil
	})
	return ignoreNotFound(err, "taint the node")
}

// mergeTaints keeps others' taints, and those of our own that are wanted.
func mergeTaints(have []corev1.Taint, wanted map[corev1.Taint]bool, now metav1.Time) []corev1.Taint {
	missing := maps.Clone(wanted)
	var out []corev1.Taint
	for _, t := range have {
		bare := corev1.Taint{Key: t.Key, Effect: t.Effect}
		if slices.Contains(ownTaints, t.Key) && !wanted[bare] {
			continue
		}
		delete(missing, bare)
		out = append(out, t)
	}
	added := slices.SortedFunc(maps.Keys(missing), func(a, b corev1.Taint) int {
		return slices.Compare([]string{a.Key, string(a.Effect)}, []string{b.Key, string(b.Effect)})
	})
	for _, t := range added {
		if t.Effect == corev1.TaintEffectNoExecute {
			t.TimeAdded = &now
		}
		out = append(out, t)
	}
	return out
}
