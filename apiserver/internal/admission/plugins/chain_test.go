package plugins

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/defaulttoleration"
	"kctl/apiserver/internal/quota"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/storage"
	"kctl/proto/core"
)

// source is a resource with some objects. Those below "live" are not in the
// cache yet.
type source struct {
	resource     core.Resource
	cached, live map[string]core.Object
	asked        int
}

func (s *source) Get(_ context.Context, namespace, name, version string) (registry.Encoded, error) {
	s.asked++
	if _, ok := s.cached[namespace+"/"+name]; ok && version == "0" {
		return registry.Encoded{JSON: []byte("c" + namespace + "/" + name), Revision: 1}, nil
	}
	if _, ok := s.live[namespace+"/"+name]; ok && version == "" {
		return registry.Encoded{JSON: []byte("l" + namespace + "/" + name), Revision: 2}, nil
	}
	if _, ok := s.cached[namespace+"/"+name]; ok && s.live == nil {
		return registry.Encoded{JSON: []byte("c" + namespace + "/" + name), Revision: 1}, nil
	}
	return registry.Encoded{}, apierrors.NewNotFound(s.resource.GVR().GroupResource(), name)
}

func (s *source) Create(_ context.Context, obj core.Object, _ registry.Admission, _ *metav1.CreateOptions) (registry.Encoded, error) {
	s.cached["/"+obj.GetName()] = obj
	return registry.Encoded{}, nil
}

func (s *source) List(context.Context, string, registry.ListOptions) (registry.List, error) {
	var list registry.List
	for key := range s.cached {
		list.Items = append(list.Items, registry.Encoded{JSON: []byte("c" + key)})
	}
	return list, nil
}

func (s *source) Decode(e registry.Encoded) (core.Object, error) {
	if e.JSON[0] == 'c' {
		return s.cached[string(e.JSON[1:])], nil
	}
	return s.live[string(e.JSON[1:])], nil
}

// stores are the resources of a cluster. Those that a test does not name have no objects.
func stores(named ...*source) func(core.Resource) Store {
	return func(r core.Resource) Store {
		for _, s := range named {
			if s.resource == r {
				return s
			}
		}
		return &source{resource: r}
	}
}

func namespace(name string, phase corev1.NamespacePhase) *core.Namespace {
	return &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NamespaceStatus{Phase: phase}}
}

func account(name string, change ...func(*core.ServiceAccount)) *core.ServiceAccount {
	sa := &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	for _, c := range change {
		c(sa)
	}
	return sa
}

func pod(change ...func(*core.Pod)) *core.Pod {
	p := &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "u1"},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "main", Image: "i"}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// noRanges is a cluster without limit ranges.
type noRanges struct{}

func (noRanges) In(context.Context, string) ([]*corev1.LimitRange, error) { return nil, nil }
func (noRanges) Forget(string)                                            {}

// chain has all plugins, with a small cluster behind them.
func chain(t *testing.T, disable ...string) *admission.Chain {
	t.Helper()
	c, err := Chain(Objects{Store: stores(
		&source{
			resource: core.Namespaces,
			cached: map[string]core.Object{
				"/default": namespace("default", corev1.NamespaceActive), "/kube-node-lease": namespace("kube-node-lease", corev1.NamespaceActive),
				"/ending": namespace("ending", corev1.NamespaceTerminating), "/again": namespace("again", corev1.NamespaceTerminating),
			},
			live: map[string]core.Object{
				"/default": namespace("default", corev1.NamespaceActive), "/ending": namespace("ending", corev1.NamespaceTerminating),
				"/again": namespace("again", corev1.NamespaceActive), "/new": namespace("new", corev1.NamespaceActive),
			},
		},
		&source{resource: core.ServiceAccounts, cached: map[string]core.Object{
			"default/default": account("default", func(sa *core.ServiceAccount) { sa.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}} }),
			"default/silent":  account("silent", func(sa *core.ServiceAccount) { sa.AutomountServiceAccountToken = new(false) }),
			"new/default":     account("default"), "again/default": account("default"),
			"default/strict": account("strict", func(sa *core.ServiceAccount) {
				sa.Annotations = map[string]string{"kubernetes.io/enforce-mountable-secrets": "true"}
			}),
			"default/strict-1": account("strict-1", func(sa *core.ServiceAccount) {
				sa.Annotations = map[string]string{"kubernetes.io/enforce-mountable-secrets": "1"}
			}),
		}},
		&source{resource: core.Pods, cached: map[string]core.Object{
			"default/mine":   pod(func(p *core.Pod) { p.Name = "mine"; p.Spec.NodeName = "n1"; withToken(p, "vault") }),
			"default/theirs": pod(func(p *core.Pod) { p.Name = "theirs"; p.Spec.NodeName = "n2" }),
			"default/inline": pod(func(p *core.Pod) {
				p.Name, p.Spec.NodeName = "inline", "n1"
				p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}},
					{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "gone"}}}}
			}),
			"default/claims": pod(func(p *core.Pod) {
				p.Name, p.Spec.NodeName = "claims", "n1"
				p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
			}),
		}},
		&source{
			resource: core.PersistentVolumeClaims,
			cached:   map[string]core.Object{"default/data": &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}}},
		},
		&source{resource: core.PersistentVolumes, cached: map[string]core.Object{"/v": &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d"}}}}}},
		&source{
			resource: storage.DriverResource,
			cached:   map[string]core.Object{"/d": &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: "vault"}}}}},
		},
		&source{resource: core.Nodes, cached: map[string]core.Object{"/n1": &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node-uid"}}}},
		runtimeClasses(), priorityClasses(),
	), DefaultPriority: defaults{}, LimitRanges: noRanges{}, Quotas: noQuotas{}, QuotaRules: noQuotas{},
	}, Settings{
		Metrics: prometheus.NewRegistry(),
		Clock:   testingclock.NewFakeClock(time.Unix(0, 0)), Disable: disable,
		Tolerations: defaulttoleration.Plugin{NotReadySeconds: 300, UnreachableSeconds: 200},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func withToken(p *core.Pod, audience string) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience}}},
	}}})
}

func create(resource core.Resource, obj core.Object) *admission.Attributes {
	return &admission.Attributes{Operation: admission.Create, Resource: resource, Namespace: obj.GetNamespace(), Name: obj.GetName(), Object: obj}
}

type noQuotas struct{}

func (noQuotas) Reserve(context.Context, quota.Change) error                 { return nil }
func (noQuotas) In(context.Context, string) ([]*corev1.ResourceQuota, error) { return nil, nil }
func (noQuotas) Forget(string)                                               {}
