package plugins

import (
	"context"
	"errors"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/declaredfeatures"
	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/admission/podresize"
	"kctl/apiserver/internal/admission/podtopology"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// rawNode has one node as it is stored.
type rawNode struct{ source }

func (rawNode) Get(_ context.Context, _, name, _ string) (registry.Encoded, error) {
	if name != "n1" {
		return registry.Encoded{}, apierrors.NewNotFound(core.Nodes.GVR().GroupResource(), name)
	}
	return registry.Encoded{JSON: []byte(`{"metadata":{"labels":{"topology.kubernetes.io/zone":"z","topology.kubernetes.io/region":"r","other":"o"}}}`)}, nil
}

func TestPodTopology(t *testing.T) {
	const zone, region = corev1.LabelTopologyZone, corev1.LabelTopologyRegion
	placed := func(node string) *core.Pod {
		return pod(func(p *core.Pod) {
			p.Spec.NodeName = node
			p.Labels = map[string]string{zone: "mine", "app": "web"}
		})
	}
	binding := &core.Binding{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Target: corev1.ObjectReference{Name: "n1"}}
	bound := create(core.Pods, binding)
	bound.Subresource = "binding"
	old := create(core.Resource{Version: "v1", Name: "bindings", Kind: "Binding", Namespaced: true}, binding.DeepCopy())
	for name, c := range map[string]struct {
		a    *admission.Attributes
		want map[string]string
	}{
		"no node yet":      {create(core.Pods, placed("")), map[string]string{zone: "mine", "app": "web"}},
		"an unknown node":  {create(core.Pods, placed("n2")), map[string]string{zone: "mine", "app": "web"}},
		"a node":           {create(core.Pods, placed("n1")), map[string]string{zone: "z", region: "r", "app": "web"}},
		"bound":            {bound, map[string]string{zone: "z", region: "r"}},
		"through bindings": {old, nil},
	} {
		check(t, name, pass(t.Context(), podtopology.Plugin{Nodes: &rawNode{}}, c.a), "")
		if got := c.a.Object.GetLabels(); !maps.Equal(got, c.want) {
			t.Errorf("%s: labels are %v", name, got)
		}
	}
}

func sized(cpu, memory string) func(*core.Pod) {
	return func(p *core.Pod) {
		p.Spec.NodeName = "n1"
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
}

func nodes(change func(*core.Node)) *lookup.Objects[*core.Node] {
	n := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")}
	if change != nil {
		change(n)
	}
	return lookup.New[*core.Node](&source{resource: core.Nodes, cached: map[string]core.Object{"/n1": n}})
}

func TestPodResize(t *testing.T) {
	on := func(node string) func(*core.Pod) { return func(p *core.Pod) { p.Spec.NodeName = node } }
	windows := func(n *core.Node) { n.Labels = map[string]string{corev1.LabelOSStable: "windows"} }
	for name, c := range map[string]struct {
		now, old *core.Pod
		node     func(*core.Node)
		want     string
		cause    metav1.CauseType
	}{
		"room":        {pod(sized("2", "1Gi")), pod(sized("1", "1Gi")), nil, "", ""},
		"no node yet": {pod(sized("9", "1Gi"), on("")), pod(sized("1", "1Gi"), on("")), nil, "", ""},
		"nothing new": {pod(sized("9", "1Gi")), pod(sized("9", "1Gi")), nil, "", ""},
		"a limit comes, of too much": {pod(sized("9", "1Gi"), func(p *core.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("9")}
		}), pod(sized("9", "1Gi")), nil, `pods "web" is forbidden: node didn't have enough allocatable resources: cpu, requested: 9000, allocatable: 2000`,
			"NodeCapacity"},
		"no such node": {pod(sized("9", "1Gi"), on("n2")), pod(sized("1", "1Gi"), on("n2")), nil, `node "n2" not found`, ""},
		"too much": {pod(sized("9", "2Gi")), pod(sized("1", "1Gi")), nil,
			`pods "web" is forbidden: node didn't have enough allocatable resources: cpu, requested: 9000, allocatable: 2000; memory, requested: 2147483648, allocatable: 1073741824`, "NodeCapacity"},
		"Windows": {pod(sized("2", "1Gi")), pod(sized("1", "1Gi")), windows,
			`pods "web" is forbidden: pod resize is only supported on linux nodes, node "n1" is "windows"`, "UnsupportedPlatform"},
	} {
		a := changed(c.now, c.old, core.Pods)
		a.Subresource = "resize"
		err := pass(t.Context(), podresize.Plugin{Nodes: nodes(c.node)}, a)
		check(t, name, err, c.want)
		var status apierrors.APIStatus
		if c.cause != "" && (!errors.As(err, &status) || len(status.Status().Details.Causes) != 1 || status.Status().Details.Causes[0].Type != c.cause) {
			t.Errorf("%s: causes are not %s: %+v", name, c.cause, err)
		}
	}
}

func TestDeclaredFeatures(t *testing.T) {
	whole := func(cpu string) func(*core.Pod) {
		return func(p *core.Pod) {
			p.Spec.NodeName = "n1"
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
		}
	}
	starting := func(requests corev1.ResourceList) *core.Pod {
		return pod(func(p *core.Pod) {
			p.Spec.NodeName = "n1"
			p.Spec.InitContainers = []core.Container{{Name: "i", Resources: corev1.ResourceRequirements{Requests: requests}}}
		})
	}
	able := func(n *core.Node) { n.Status.DeclaredFeatures = []string{"InPlacePodLevelResourcesVerticalScaling"} }
	for name, c := range map[string]struct {
		now, old *core.Pod
		node     func(*core.Node)
		want     string
	}{
		"of a container": {pod(sized("2", "1Gi")), pod(sized("1", "1Gi")), nil, ""},
		"of the pod": {pod(whole("2")), pod(whole("1")), nil,
			`pod update requires features InPlacePodLevelResourcesVerticalScaling which are not available on node "n1"`},
		"as the node can": {pod(whole("2")), pod(whole("1")), able, ""},
		"of an init container": {starting(corev1.ResourceList{"cpu": resource.MustParse("1")}), starting(nil), nil,
			`pod update requires features InPlacePodVerticalScalingInitContainers which are not available on node "n1"`},
		"of nothing": {starting(corev1.ResourceList{}), starting(nil), nil, ""},
	} {
		p, err := declaredfeatures.New(nodes(c.node))
		if err != nil {
			t.Fatal(err)
		}
		a := changed(c.now, c.old, core.Pods)
		a.Subresource = "resize"
		check(t, name, pass(t.Context(), p, a), c.want)
	}
}
