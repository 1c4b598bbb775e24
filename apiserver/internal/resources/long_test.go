package resources_test

import (
	"slices"
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// TestLongLists: validating a list that fills a request body takes no time that
// grows with the square of its length. If it did, the test would time out.
func TestLongLists(t *testing.T) {
	b := start(t)
	const many = 400_000
	list, others := make([]string, many), make([]string, many)
	for i := range list {
		list[i], others[i] = strconv.Itoa(i), strconv.Itoa(many+i)
	}
	meta := metav1.ObjectMeta{Name: "x", Namespace: "default"}
	for resource, obj := range map[string]func() core.Object{
		"services": func() core.Object {
			s := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}}
			for _, text := range list {
				s.Spec.IPFamilies = append(s.Spec.IPFamilies, corev1.IPFamily(text))
			}
			return s
		},
		"pods": func() core.Object {
			p := &core.Pod{ObjectMeta: meta, Spec: core.PodSpec{}}
			for _, text := range list {
				p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: text, WhenUnsatisfiable: corev1.DoNotSchedule})
			}
			return p
		},
		"jobs": func() core.Object {
			j := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{}}}}
			for _, text := range list {
				j.Spec.Selector.MatchLabels[text] = ""
			}
			return j
		},
		"resourceslices": func() core.Object {
			return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: resourcev1.ResourceSliceSpec{Devices: []resourcev1.Device{{Name: "d", BindingConditions: list, BindingFailureConditions: others}}}}
		},
	} {
		t.Run(resource, func(t *testing.T) {
			i := slices.IndexFunc(b.served, func(s registry.Served) bool { return s.Resource.Info().Resource.Name == resource })
			sent := obj()
			b.served[i].Resource.Default(sent)
			if _, err := b.served[i].Resource.Create(t.Context(), sent, registry.Admission{}, &metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
				t.Errorf("answer: %.300v", err)
			}
		})
	}
}
