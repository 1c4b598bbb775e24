package plugins

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/proto/core"
)

// only makes one plugin, with a namespace that has these annotations.
func only(t *testing.T, name string, annotations map[string]string, part string) (admission.Plugin, *source) {
	t.Helper()
	ns := namespace("default", corev1.NamespaceActive)
	ns.Annotations = annotations
	namespaces := &source{resource: core.Namespaces, cached: map[string]core.Object{"/default": ns}}
	files := configuration.Files{}
	if part != "" {
		files[name] = []byte(part)
	}
	var disable []string
	for _, e := range allPlugins {
		if e.enabledByDefault && e.make != nil {
			disable = append(disable, e.name)
		}
	}
	_, err := Chain(Objects{Store: stores(namespaces)}, Settings{
		Enable: []string{name}, Disable: disable, Files: files, Clock: testingclock.NewFakeClock(time.Unix(0, 0)),
	})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := named(name)
	d := newDependencies(Objects{Store: stores(namespaces)}, Settings{
		Metrics: prometheus.NewRegistry(), Files: files, Clock: testingclock.NewFakeClock(time.Unix(0, 0)),
	})
	p, err := e.make(d)
	if err != nil {
		t.Fatal(err)
	}
	return p, namespaces
}

// pass sends an object through both phases of one plugin.
func pass(ctx context.Context, p admission.Plugin, a *admission.Attributes) error {
	if !p.Handles(a.Operation) {
		return nil
	}
	if m, ok := p.(admission.Mutator); ok {
		if err := m.Admit(ctx, a); err != nil {
			return err
		}
	}
	if v, ok := p.(admission.Validator); ok {
		return v.Validate(ctx, a)
	}
	return nil
}

func changed(obj, old core.Object, resource core.Resource) *admission.Attributes {
	a := create(resource, obj)
	a.Operation, a.OldObject = admission.Update, old
	return a
}

func TestAlways(t *testing.T) {
	p, _ := only(t, "AlwaysDeny", nil, "")
	check(t, "deny", pass(t.Context(), p, create(core.Pods, pod())), "admission control is denying all modifications")
	p, _ = only(t, "AlwaysAdmit", nil, "")
	check(t, "admit", pass(t.Context(), p, create(core.Pods, pod())), "")
}

func TestAlwaysPullImages(t *testing.T) {
	p, _ := only(t, "AlwaysPullImages", nil, "")
	made := pod(func(p *core.Pod) {
		p.Spec.InitContainers = []core.Container{{Image: "j", ImagePullPolicy: corev1.PullNever}}
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "k"}}}}
	})
	check(t, "new", pass(t.Context(), p, create(core.Pods, made)), "")
	if made.Spec.InitContainers[0].ImagePullPolicy != corev1.PullAlways || made.Spec.Containers[0].ImagePullPolicy != corev1.PullAlways ||
		made.Spec.Volumes[0].Image.PullPolicy != corev1.PullAlways {
		t.Errorf("policies are %+v", made.Spec)
	}
	made.Spec.Containers[0].ImagePullPolicy = corev1.PullNever
	check(t, "unset by another", p.(admission.Validator).Validate(t.Context(), create(core.Pods, made)),
		`spec.containers[0].imagePullPolicy: Unsupported value: "Never": supported values: "Always"`)
	old := made.DeepCopy()
	check(t, "an update without new images", pass(t.Context(), p, changed(made, old, core.Pods)), "")
	if made.Spec.Containers[0].ImagePullPolicy != corev1.PullNever {
		t.Error("an update without new images was changed")
	}
	made.Spec.Containers[0].Image = "another"
	check(t, "an update with a new image", pass(t.Context(), p, changed(made, old, core.Pods)), "")
	if made.Spec.Containers[0].ImagePullPolicy != corev1.PullAlways {
		t.Error("an update with a new image was not changed")
	}
}

func TestNamespacePlugins(t *testing.T) {
	elsewhere := pod(func(p *core.Pod) { p.Namespace = "none" })
	exists, _ := only(t, "NamespaceExists", nil, "")
	check(t, "there", pass(t.Context(), exists, changed(pod(), pod(), core.Pods)), "")
	check(t, "not there", pass(t.Context(), exists, changed(elsewhere, elsewhere, core.Pods)), `namespaces "none" not found`)
	provision, namespaces := only(t, "NamespaceAutoProvision", nil, "")
	dry := create(core.Pods, elsewhere)
	dry.DryRun = true
	check(t, "dry run", pass(t.Context(), provision, dry), "")
	if len(namespaces.cached) != 1 {
		t.Error("a dry run made a namespace")
	}
	check(t, "made", pass(t.Context(), provision, create(core.Pods, elsewhere)), "")
	if namespaces.cached["/none"] == nil {
		t.Error("the namespace was not made")
	}
}

func TestAntiAffinityTopology(t *testing.T) {
	p, _ := only(t, "LimitPodHardAntiAffinityTopology", nil, "")
	away := func(key string) *core.Pod {
		return pod(func(p *core.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: key}}}}
		})
	}
	check(t, "nodes", pass(t.Context(), p, create(core.Pods, away(corev1.LabelHostname))), "")
	check(t, "zones", pass(t.Context(), p, create(core.Pods, away("zone"))),
		"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed")
}

func TestExtendedResourceToleration(t *testing.T) {
	p, _ := only(t, "ExtendedResourceToleration", nil, "")
	asks := corev1.ResourceList{"z.com/gpu": resource.MustParse("1"), "a.com/gpu": resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("1")}
	made := pod(func(p *core.Pod) { p.Spec.Containers[0].Resources.Requests = asks })
	for range 2 { // the second time nothing is added
		check(t, "asks", pass(t.Context(), p, create(core.Pods, made)), "")
	}
	want := []corev1.Toleration{
		{Key: "a.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: "z.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	}
	if !slices.Equal(made.Spec.Tolerations, want) {
		t.Errorf("tolerations are %+v", made.Spec.Tolerations)
	}
	many := pod(func(p *core.Pod) {
		seconds := int64(1) // upstream replaces it
		p.Spec.Tolerations = []corev1.Toleration{{
			Key: "a.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule, TolerationSeconds: &seconds,
		}}
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"a.com/gpu": resource.MustParse("1")}
		for i := range 50_000 { // in minutes, if each were looked for among all
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceName("b.com/gpu"+strconv.Itoa(i))] = resource.MustParse("1")
		}
	})
	check(t, "asks for much", pass(t.Context(), p, create(core.Pods, many)), "")
	if len(many.Spec.Tolerations) != 50_001 || many.Spec.Tolerations[0] != want[0] {
		t.Errorf("%d tolerations, the first of them %+v", len(many.Spec.Tolerations), many.Spec.Tolerations[:2])
	}
}

func TestDenyServiceExternalIPs(t *testing.T) {
	p, _ := only(t, "DenyServiceExternalIPs", nil, "")
	service := func(addresses ...string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}, Spec: corev1.ServiceSpec{ExternalIPs: addresses}}
	}
	const refusal = "Use of external IPs is denied by admission control"
	check(t, "none", pass(t.Context(), p, create(core.Services, service())), "")
	check(t, "new", pass(t.Context(), p, create(core.Services, service("1.2.3.4"))), refusal)
	check(t, "kept", pass(t.Context(), p, changed(service("1.2.3.4"), service("1.2.3.4", "1.1.1.1"), core.Services)), "")
	check(t, "one more", pass(t.Context(), p, changed(service("1.2.3.4", "1.1.1.1"), service("1.2.3.4"), core.Services)), refusal)
}

func TestPodNodeSelector(t *testing.T) {
	selects := func(key, value string) *core.Pod {
		return pod(func(p *core.Pod) { p.Spec.NodeSelector = map[string]string{key: value} })
	}
	p, _ := only(t, "PodNodeSelector", map[string]string{"scheduler.alpha.kubernetes.io/node-selector": "env=prod"}, "")
	made := pod()
	check(t, "merged", pass(t.Context(), p, create(core.Pods, made)), "")
	if made.Spec.NodeSelector["env"] != "prod" {
		t.Errorf("selector is %v", made.Spec.NodeSelector)
	}
	check(t, "beside", pass(t.Context(), p, create(core.Pods, selects("disk", "ssd"))), "")
	check(t, "against", pass(t.Context(), p, create(core.Pods, selects("env", "dev"))), "pod node label selector conflicts with its namespace node label selector")
	p, _ = only(t, "PodNodeSelector", map[string]string{"scheduler.alpha.kubernetes.io/node-selector": "env=pr od,,=!"}, "")
	check(t, "nonsense", pass(t.Context(), p, create(core.Pods, pod())), "[env]: Invalid value:")
	p, _ = only(t, "PodNodeSelector", nil, "podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: 'env=prod', default: 'env=prod,disk=ssd'}")
	made = pod()
	check(t, "the cluster's default", pass(t.Context(), p, create(core.Pods, made)), "")
	if made.Spec.NodeSelector["env"] != "prod" {
		t.Errorf("selector is %v", made.Spec.NodeSelector)
	}
	check(t, "listed", pass(t.Context(), p, create(core.Pods, selects("disk", "ssd"))), "")
	check(t, "not listed", pass(t.Context(), p, create(core.Pods, selects("disk", "hdd"))), "pod node label selector labels conflict with its namespace whitelist")
}

func TestPodTolerationRestriction(t *testing.T) {
	annotations := map[string]string{
		"scheduler.alpha.kubernetes.io/defaultTolerations":   `[{"operator":"Equal","key":"k","value":"v","effect":"NoSchedule"},{"operator":"Exists","key":"m"}]`,
		"scheduler.alpha.kubernetes.io/tolerationsWhitelist": `[{"operator":"Exists","key":"k"},{"operator":"Exists","key":"m"},{"operator":"Exists","key":"node.kubernetes.io/memory-pressure"}]`,
	}
	p, _ := only(t, "PodTolerationRestriction", annotations, "")
	bears := func(tolerations ...corev1.Toleration) *core.Pod {
		return pod(func(p *core.Pod) { p.Spec.Tolerations = tolerations })
	}
	exists := func(key string, effect corev1.TaintEffect, seconds *int64) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect, TolerationSeconds: seconds}
	}
	defaultK := corev1.Toleration{Key: "k", Operator: corev1.TolerationOpEqual, Value: "v", Effect: corev1.TaintEffectNoSchedule}
	for name, c := range map[string]struct {
		pod  *core.Pod
		want []corev1.Toleration
	}{
		"none":     {bears(), []corev1.Toleration{defaultK, exists("m", "", nil)}},
		"wider":    {bears(exists("k", "", nil)), []corev1.Toleration{exists("k", "", nil), exists("m", "", nil)}},
		"the same": {bears(defaultK), []corev1.Toleration{defaultK, exists("m", "", nil)}},
		"shorter":  {bears(exists("m", corev1.TaintEffectNoExecute, new(int64(5)))), []corev1.Toleration{defaultK, exists("m", "", nil)}},
		"shorter of its own": {bears(exists("k", corev1.TaintEffectNoExecute, new(int64(5))), exists("k", corev1.TaintEffectNoExecute, nil)),
			[]corev1.Toleration{exists("k", corev1.TaintEffectNoExecute, nil), defaultK, exists("m", "", nil)}},
	} {
		check(t, name, pass(t.Context(), p, create(core.Pods, c.pod)), "")
		if !slices.EqualFunc(c.pod.Spec.Tolerations, c.want, func(a, b corev1.Toleration) bool { return a.String() == b.String() }) {
			t.Errorf("%s: %+v", name, c.pod.Spec.Tolerations)
		}
	}
	const refusal = "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist"
	check(t, "not listed", pass(t.Context(), p, create(core.Pods, bears(exists("other", "", nil)))), refusal)
	check(t, "everything", pass(t.Context(), p, create(core.Pods, bears(exists("", "", nil)))), refusal)
	burstable := pod(func(p *core.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	})
	check(t, "burstable", pass(t.Context(), p, create(core.Pods, burstable)), "")
	if n := len(burstable.Spec.Tolerations); n != 3 || burstable.Spec.Tolerations[2].Key != corev1.TaintNodeMemoryPressure {
		t.Errorf("tolerations are %+v", burstable.Spec.Tolerations)
	}
	p, _ = only(t, "PodTolerationRestriction", map[string]string{"scheduler.alpha.kubernetes.io/defaultTolerations": "nonsense"}, "")
	check(t, "nonsense", pass(t.Context(), p, create(core.Pods, pod())),
		"annotation scheduler.alpha.kubernetes.io/defaultTolerations of namespace default: invalid character")
}

func TestEventRateLimit(t *testing.T) {
	const header = "{apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, limits: "
	p, _ := only(t, "EventRateLimit", nil, header+"[{type: Namespace, qps: 1, burst: 2, cacheSize: 1}]}")
	event := func(namespace string) *admission.Attributes {
		return create(core.Events, &core.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "e"}})
	}
	for range 2 {
		check(t, "within the burst", pass(t.Context(), p, event("a")), "")
	}
	err := pass(t.Context(), p, event("a"))
	check(t, "beyond", err, "Too many requests: limit reached on type Namespace for key a")
	if !apierrors.IsTooManyRequests(err) {
		t.Errorf("not a 429: %v", err)
	}
	check(t, "another namespace", pass(t.Context(), p, event("b")), "")
	check(t, "one that was forgotten for it", pass(t.Context(), p, event("a")), "")
	e, _ := named("EventRateLimit")
	for part, want := range map[string]string{
		"": "EventRateLimit needs limits",
		header + "[{type: Planet, qps: 1, burst: 1}]}": `configuration of EventRateLimit: limits[0]: type "Planet" is not one of`,
		header + "[{type: Server, qps: 0, burst: 1}]}": "configuration of EventRateLimit: limits[0]: qps must be positive",
		header + "[{type: Server, qpz: 0, burst: 1}]}": "configuration of EventRateLimit: ",
		"{apiVersion: v1, kind: Configuration}":        "configuration of EventRateLimit: is a Configuration of",
	} {
		files := configuration.Files{}
		if part != "" {
			files["EventRateLimit"] = []byte(part)
		}
		_, err := e.make(&dependencies{Settings: Settings{Metrics: prometheus.NewRegistry(), Files: files}})
		check(t, part, err, want)
	}
}
