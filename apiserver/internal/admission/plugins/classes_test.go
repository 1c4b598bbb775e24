package plugins

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/priority"
	"kctl/proto/core"
)

// defaults are the priority classes marked as global default.
type defaults []priority.Class

func (d defaults) ByIndex(string) []priority.Class { return d }

func (defaults) Synced() <-chan struct{} {
	known := make(chan struct{})
	close(known)
	return known
}

func priorityClass(name string, value int32, policy corev1.PreemptionPolicy) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, PreemptionPolicy: &policy}
}

func priorityClasses() *source {
	return &source{resource: core.PriorityClasses, cached: map[string]core.Object{
		"/system-node-critical": priorityClass("system-node-critical", 2000001000, corev1.PreemptLowerPriority),
		"/batch":                priorityClass("batch", -5, corev1.PreemptNever),
	}}
}

func runtimeClasses() *source {
	return &source{resource: core.RuntimeClasses, cached: map[string]core.Object{
		"/plain": &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Handler: "runc"},
		"/sandboxed": &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{Name: "sandboxed"}, Handler: "vm",
			Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}},
			Scheduling: &nodev1.Scheduling{
				NodeSelector: map[string]string{"vm": "yes"},
				Tolerations:  []corev1.Toleration{{Key: "vm", Operator: corev1.TolerationOpExists}},
			},
		},
	}}
}

func admit(t *testing.T, p *core.Pod, d defaults) error {
	t.Helper()
	c, err := Chain(Objects{
		Store: stores(runtimeClasses(), priorityClasses()), DefaultPriority: d, LimitRanges: noRanges{}, Quotas: noQuotas{}, QuotaRules: noQuotas{},
	},
		Settings{Clock: testingclock.NewFakeClock(time.Unix(0, 0)), Disable: []string{"NamespaceLifecycle", "ServiceAccount", "PodSecurity"}})
	if err != nil {
		t.Fatal(err)
	}
	a := create(core.Pods, p)
	if err := c.Admit(t.Context(), a); err != nil {
		return err
	}
	return c.Validate(t.Context(), a)
}

func TestRuntimeClass(t *testing.T) {
	runs := func(class string) func(*core.Pod) { return func(p *core.Pod) { p.Spec.RuntimeClassName = &class } }
	costs := func(cpu string) func(*core.Pod) {
		return func(p *core.Pod) { p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)} }
	}
	free := func(p *core.Pod) { p.Spec.Overhead = corev1.ResourceList{} }
	for name, c := range map[string]struct {
		pod  *core.Pod
		want string
	}{
		"none":              {pod(), ""},
		"missing":           {pod(runs("gone")), `pods "web" is forbidden: pod rejected: RuntimeClass "gone" not found`},
		"plain":             {pod(runs("plain")), ""},
		"the same overhead": {pod(runs("sandboxed"), costs("250m")), ""},
		"another overhead": {pod(runs("sandboxed"), costs("1")),
			`pods "web" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead`},
		"an empty overhead":    {pod(runs("sandboxed"), free), ""},
		"empty, of no class":   {pod(free), `pods "web" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead`},
		"overhead of no class": {pod(costs("1")), `pods "web" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead`},
		"another node": {pod(runs("sandboxed"), func(p *core.Pod) { p.Spec.NodeSelector = map[string]string{"vm": "no"} }),
			`pods "web" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no`},
	} {
		check(t, name, admit(t, c.pod, nil), c.want)
	}
	p := pod(runs("sandboxed"))
	check(t, "merged", admit(t, p, nil), "")
	if cpu := p.Spec.Overhead[corev1.ResourceCPU]; cpu.String() != "250m" || p.Spec.NodeSelector["vm"] != "yes" {
		t.Errorf("merged into %+v", p.Spec)
	}
	tolerated := 0
	for _, toleration := range p.Spec.Tolerations {
		if toleration.Key == "vm" {
			tolerated++
		}
	}
	if tolerated != 1 {
		t.Errorf("tolerations are %+v", p.Spec.Tolerations)
	}
}

func TestPriorityByClass(t *testing.T) {
	named := pod(func(p *core.Pod) { p.Spec.PriorityClassName = "batch" })
	check(t, "named", admit(t, named, nil), "")
	if *named.Spec.Priority != -5 || *named.Spec.PreemptionPolicy != corev1.PreemptNever {
		t.Errorf("priority %d, %s", *named.Spec.Priority, *named.Spec.PreemptionPolicy)
	}
	check(t, "another policy", admit(t, pod(func(p *core.Pod) {
		p.Spec.PriorityClassName = "batch"
		p.Spec.PreemptionPolicy = new(corev1.PreemptLowerPriority)
	}), nil), `pods "web" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec`)

	unnamed := pod()
	two := defaults{{Name: "high", Value: 9, Policy: corev1.PreemptLowerPriority, Global: true},
		{Name: "low", Value: 3, Policy: corev1.PreemptNever, Global: true}}
	check(t, "default", admit(t, unnamed, two), "")
	if unnamed.Spec.PriorityClassName != "low" || *unnamed.Spec.Priority != 3 || *unnamed.Spec.PreemptionPolicy != corev1.PreemptNever {
		t.Errorf("the default gave %q, %d, %s", unnamed.Spec.PriorityClassName, *unnamed.Spec.Priority, *unnamed.Spec.PreemptionPolicy)
	}
}

func TestOneDefaultPriority(t *testing.T) {
	plugin := priority.New(nil, defaults{{Name: "first", Global: true}})
	class := priorityClass("second", 1, corev1.PreemptNever)
	a := &admission.Attributes{Operation: admission.Create, Resource: core.PriorityClasses, Name: "second", Object: class}
	check(t, "not a default", plugin.Validate(t.Context(), a), "")
	class.GlobalDefault = true
	check(t, "a second default", plugin.Validate(t.Context(), a), "PriorityClass first is already marked as default. Only one default can exist")
	class.Name = "first"
	check(t, "the default itself", plugin.Validate(t.Context(), a), "")
}
