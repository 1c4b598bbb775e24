package volume

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"
)

// TestClaimSources: an unsupported source is dropped from the older field only where the
// newer one is empty; otherwise they must match.
func TestClaimSources(t *testing.T) {
	claims := ClaimStrategy(clock.RealClock{})
	local := func(group, kind string) *corev1.TypedLocalObjectReference {
		return &corev1.TypedLocalObjectReference{APIGroup: new(group), Kind: kind, Name: "s"}
	}
	ref := func(group, kind, namespace string) *corev1.TypedObjectReference {
		return &corev1.TypedObjectReference{APIGroup: new(group), Kind: kind, Name: "s", Namespace: new(namespace)}
	}
	const subdomain = "a lowercase RFC 1123 subdomain"
	for name, c := range map[string]struct {
		source *corev1.TypedLocalObjectReference
		ref    *corev1.TypedObjectReference
		want   []string
	}{
		"another kind":                     {local("x.io", "X"), nil, nil},
		"nothing":                          {&corev1.TypedLocalObjectReference{}, nil, nil},
		"another kind beside a claim":      {local("x.io", "X"), ref("", "PersistentVolumeClaim", ""), []string{"must match dataSourceRef"}},
		"another kind beside one far away": {local("x.io", "X"), ref("", "PersistentVolumeClaim", "far"), nil},
		"nothing beside a claim": {&corev1.TypedLocalObjectReference{}, ref("", "PersistentVolumeClaim", ""),
			[]string{"dataSource.name", "dataSource.kind", "when referencing the default apiGroup", "must match dataSourceRef"}},
		"a group":                            {nil, ref("x.io", "X", ""), nil},
		"an invalid group, in both from one": {nil, ref("a..b", "X", ""), []string{subdomain, subdomain}},
	} {
		t.Run(name, func(t *testing.T) {
			one := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, DataSource: c.source, DataSourceRef: c.ref,
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			}}
			claims.Create.Prepare(t.Context(), one)
			errs := claims.Create.Validate(t.Context(), one)
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
