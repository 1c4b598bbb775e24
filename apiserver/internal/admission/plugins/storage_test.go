package plugins

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission/claimresize"
	"kctl/apiserver/internal/admission/defaultclass"
	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/admission/storageprotection"
	"kctl/apiserver/internal/resources/storage"
	"kctl/apiserver/internal/resources/volume"
	"kctl/proto/core"
)

// classed is the metadata of a class created at a given second, with an
// annotation.
func classed(name string, second int64, annotation, value string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0)), Annotations: map[string]string{annotation: value},
	}
}

func storageClass(meta metav1.ObjectMeta, grows *bool) core.Object {
	return &storagev1.StorageClass{ObjectMeta: meta, AllowVolumeExpansion: grows}
}

func claim(size string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	for _, f := range change {
		f(c)
	}
	return c
}

func ofClass(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
}

const (
	marker     = "storageclass.kubernetes.io/is-default-class"
	betaMarker = "storageclass.beta.kubernetes.io/is-default-class"
)

func TestDefaultStorageClass(t *testing.T) {
	old := storageClass(classed("old", 1, marker, "true"), nil)
	no := storageClass(classed("no", 9, marker, "yes"), nil)
	beta := storageClass(classed("beta", 2, betaMarker, "true"), nil)
	alpha := storageClass(classed("alpha", 2, marker, "true"), nil)
	oldStyle := func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "z"}
	}
	for name, c := range map[string]struct {
		classes []core.Object
		claim   *corev1.PersistentVolumeClaim
		want    *string
	}{
		"there is none":          {[]core.Object{no}, claim("1Gi"), nil},
		"one":                    {[]core.Object{no, old}, claim("1Gi"), new("old")},
		"the youngest":           {[]core.Object{old, beta}, claim("1Gi"), new("beta")},
		"of one second by name":  {[]core.Object{beta, old, alpha}, claim("1Gi"), new("alpha")},
		"named":                  {[]core.Object{old}, claim("1Gi", ofClass("mine")), new("mine")},
		"none wanted":            {[]core.Object{old}, claim("1Gi", ofClass("")), new("")},
		"named by an annotation": {[]core.Object{old}, claim("1Gi", oldStyle), nil},
	} {
		p := defaultclass.ForClaims{Classes: classesOf(c.classes...)}
		check(t, name, pass(t.Context(), p, create(volume.Claims, c.claim)), "")
		if got := c.claim.Spec.StorageClassName; ptr.Deref(got, "-") != ptr.Deref(c.want, "-") {
			t.Errorf("%s: class is %s", name, ptr.Deref(got, "not set"))
		}
	}
	late := claim("1Gi")
	check(t, "update", pass(t.Context(), defaultclass.ForClaims{Classes: classesOf(old)}, changed(late, claim("1Gi"), volume.Claims)), "")
	if late.Spec.StorageClassName != nil {
		t.Error("a claim that was there got a class")
	}
}

func classesOf(classes ...core.Object) *source {
	s := &source{cached: map[string]core.Object{}}
	for _, c := range classes {
		s.cached["/"+c.GetName()] = c
	}
	return s
}

func TestDefaultIngressClass(t *testing.T) {
	class := func(name, value string) core.Object {
		return &networkingv1.IngressClass{ObjectMeta: classed(name, 1, networkingv1.AnnotationIsDefaultIngressClass, value)}
	}
	p := defaultclass.ForIngresses{Classes: classesOf(class("b", "true"), class("a", "false"))}
	for name, c := range map[string]struct{ class, annotation, want *string }{
		"the default":            {nil, nil, new("b")},
		"named":                  {new("mine"), nil, new("mine")},
		"named by an annotation": {nil, new("mine"), nil},
	} {
		ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: networkingv1.IngressSpec{IngressClassName: c.class}}
		if c.annotation != nil {
			ingress.Annotations = map[string]string{"kubernetes.io/ingress.class": *c.annotation}
		}
		a := create(core.Resource{Group: "networking.k8s.io", Version: "v1", Name: "ingresses", Kind: "Ingress", Namespaced: true}, ingress)
		check(t, name, pass(t.Context(), p, a), "")
		if got := ingress.Spec.IngressClassName; ptr.Deref(got, "-") != ptr.Deref(c.want, "-") {
			t.Errorf("%s: class is %s", name, ptr.Deref(got, "not set"))
		}
	}
}

func TestStorageProtection(t *testing.T) {
	for want, c := range map[string]struct {
		resource core.Resource
		obj      core.Object
	}{
		"kubernetes.io/pvc-protection": {volume.Claims, claim("1Gi")},
		"kubernetes.io/pv-protection":  {volume.Volumes, &corev1.PersistentVolume{}},
		"kubernetes.io/vac-protection": {storage.AttributesClassResource, &storagev1.VolumeAttributesClass{}},
		"":                             {core.Pods, pod()},
	} {
		for range 2 { // once is enough
			check(t, want, pass(t.Context(), storageprotection.Plugin{}, create(c.resource, c.obj)), "")
		}
		switch has := c.obj.GetFinalizers(); {
		case want == "" && len(has) > 0, want != "" && (len(has) != 1 || has[0] != want):
			t.Errorf("%T has %v, want %q", c.obj, has, want)
		}
	}
}

func TestClaimResize(t *testing.T) {
	const refused = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
	p := claimresize.Plugin{Classes: lookup.New[*storagev1.StorageClass](classesOf(
		storageClass(metav1.ObjectMeta{Name: "grows"}, new(true)), storageClass(metav1.ObjectMeta{Name: "fixed"}, nil),
	))}
	status := changed(claim("2Gi"), claim("1Gi"), volume.Claims)
	status.Subresource = "status"
	check(t, "status", pass(t.Context(), p, status), "")
	for name, c := range map[string]struct {
		now, old *corev1.PersistentVolumeClaim
		want     string
	}{
		"grows":         {claim("2Gi", ofClass("grows")), claim("1Gi"), ""},
		"the same":      {claim("1Gi", ofClass("fixed")), claim("1024Mi"), ""},
		"shrinks":       {claim("1Gi", ofClass("fixed")), claim("2Gi"), ""},
		"fixed":         {claim("2Gi", ofClass("fixed")), claim("1Gi"), refused},
		"no class":      {claim("2Gi"), claim("1Gi"), refused},
		"unknown class": {claim("2Gi", ofClass("gone")), claim("1Gi"), refused},
	} {
		check(t, name, pass(t.Context(), p, changed(c.now, c.old, volume.Claims)), c.want)
	}
}
