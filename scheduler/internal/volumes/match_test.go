package volumes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// Kubelets go by the labels of a volume's affinity alone, and so does the scheduler.
func TestOnNodeGoesByLabels(t *testing.T) {
	node := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"}}}
	in := func(key, value string) []corev1.NodeSelectorRequirement {
		return []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}
	}
	for name, each := range map[string]struct {
		term corev1.NodeSelectorTerm
		want bool
	}{
		"its label":                    {corev1.NodeSelectorTerm{MatchExpressions: in("zone", "a")}, true},
		"another label":                {corev1.NodeSelectorTerm{MatchExpressions: in("zone", "b")}, false},
		"its label and another's name": {corev1.NodeSelectorTerm{MatchExpressions: in("zone", "a"), MatchFields: in("metadata.name", "other")}, true},
		"another label and its name":   {corev1.NodeSelectorTerm{MatchExpressions: in("zone", "b"), MatchFields: in("metadata.name", "n")}, false},
	} {
		volume := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{each.term}}}}}
		if got := OnNode(volume, node); got != each.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
