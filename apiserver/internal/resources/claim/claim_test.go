package claim

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/apiserver/internal/field"
)

// Templates keep a source in another namespace: what is dropped from claims is stored in them.
func TestSourceInAnotherNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		namespace string
		source    *corev1.TypedLocalObjectReference
		want      []string
	}{
		"alone":                    {"far", nil, nil},
		"no name":                  {"Far.", nil, []string{`dataSourceRef.namespace: Invalid value: "Far."`}},
		"beside one of the same":   {"far", &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "s"}, []string{"may not be specified"}},
		"here, beside one of here": {"", &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "s"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ref := &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "s", Namespace: new(c.namespace)}
			errs := ValidateSpec(&corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, DataSource: c.source, DataSourceRef: ref,
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			}, field.NewPath("spec"))
			if len(errs) != len(c.want) {
				t.Fatalf("%v, want %q", errs, c.want)
			}
			for i, want := range c.want {
				if !strings.Contains(errs[i].Error(), want) {
					t.Errorf("%v, want %q", errs[i], want)
				}
			}
		})
	}
}
