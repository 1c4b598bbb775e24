package podsecurity

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// spaces are the labels of namespaces, by name.
type spaces map[string]map[string]string

func (s spaces) Get(_ context.Context, _, name string) (*core.Namespace, error) {
	return &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: s[name]}}, nil
}

const label = "pod-security.kubernetes.io/"

var known = spaces{
	"free":   nil,
	"strict": {label + "enforce": "baseline", label + "warn": "restricted"},
	"wrong":  {label + "enforce": "bogus"},
	"exempt": {label + "enforce": "restricted"},
	"old":    {label + "enforce": "restricted", label + "enforce-version": "v1.18"},
}

const part = `{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration,
	exemptions: {usernames: [jane], runtimeClasses: [vm], namespaces: [exempt]}}`

func plugin(t *testing.T, part string, pods ...core.Object) *Plugin {
	t.Helper()
	files := configuration.Files{}
	if part != "" {
		files[Name] = []byte(part)
	}
	p, err := New(known, registrytest.New(core.Pods, pods...), files, prometheus.NewRegistry(), testingclock.NewFakePassiveClock(time.Unix(0, 0)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func podOf(t *testing.T, spec string) *core.Pod {
	t.Helper()
	p := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

// asked returns the plugin's warnings and its refusal.
func asked(t *testing.T, p *Plugin, a *admission.Attributes) ([]string, error) {
	t.Helper()
	var warnings request.Warnings
	err := p.Validate(request.With(t.Context(), &request.Arrival{Warnings: &warnings}), a)
	return warnings.All(), err
}

const (
	privileged = "{hostNetwork: true, containers: [{name: c, securityContext: {privileged: true}}]}"
	ordinary   = "{containers: [{name: c}]}"
	careful    = "{securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [{name: c, securityContext: " +
		"{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}"

	refusal = `violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true), privileged (container "c" must not set securityContext.privileged=true)`
	warning = `would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`
)

// TestPods compares the answers for pods with those of upstream 1.37.
func TestPods(t *testing.T) {
	p := plugin(t, part)
	for name, c := range map[string]struct {
		namespace, spec, user string
		err, warning          string // "" for none; only how they begin
	}{
		"no labels":             {namespace: "free", spec: privileged},
		"refused":               {namespace: "strict", spec: privileged, err: refusal},
		"warned of":             {namespace: "strict", spec: ordinary, warning: warning},
		"fine":                  {namespace: "strict", spec: careful},
		"exempt user":           {namespace: "strict", spec: privileged, user: "jane"},
		"exempt runtime class":  {namespace: "strict", spec: strings.Replace(privileged, "{", "{runtimeClassName: vm, ", 1)},
		"exempt namespace":      {namespace: "exempt", spec: privileged},
		"an unreadable label":   {namespace: "wrong", spec: ordinary, err: `violates PodSecurity "restricted:latest": allowPrivilegeEscalation`},
		"a readable one for it": {namespace: "wrong", spec: careful},
		"an older standard":     {namespace: "old", spec: ordinary, err: `violates PodSecurity "restricted:v1.18": allowPrivilegeEscalation`},
	} {
		a := &admission.Attributes{Operation: admission.Create, Namespace: c.namespace, Object: podOf(t, c.spec), User: &request.User{Username: c.user}}
		warnings, err := asked(t, p, a)
		switch {
		case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.HasPrefix(err.Error(), c.err)):
			t.Errorf("%s: %v", name, err)
		case c.warning == "" && len(warnings) > 0, c.warning != "" && !slices.Equal(warnings, []string{c.warning}):
			t.Errorf("%s: warnings %q", name, warnings)
		}
	}
}

func TestPodChanges(t *testing.T) {
	p := plugin(t, "")
	for op, handles := range map[admission.Operation]bool{admission.Create: true, admission.Update: true, admission.Delete: false, admission.Connect: false} {
		if got := p.Handles(op); got != handles {
			t.Errorf("%s: %v", op, got)
		}
	}
	old := podOf(t, privileged)
	old.Spec.InitContainers = []core.Container{{Name: "i"}}
	relabelled, reimaged, initial := old.DeepCopy(), old.DeepCopy(), old.DeepCopy()
	initial.Spec.InitContainers[0].Image = "another"
	relabelled.Labels = map[string]string{"a": "b"}
	reimaged.Spec.Containers[0].Image = "another"
	for name, c := range map[string]struct {
		pod         *core.Pod
		subresource string
		refused     bool
	}{
		"labels":           {relabelled, "", false},
		"an image":         {reimaged, "", true},
		"an init image":    {initial, "", true},
		"a resize":         {reimaged, "resize", true},
		"only a resize":    {relabelled, "resize", false},
		"a status":         {reimaged, "status", false},
		"debug containers": {relabelled, "ephemeralcontainers", true},
	} {
		_, err := asked(t, p, &admission.Attributes{Operation: admission.Update, Subresource: c.subresource, Namespace: "strict", Object: c.pod, OldObject: old})
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTemplates: an object with a pod template causes a warning and is not
// refused.
func TestTemplates(t *testing.T) {
	p := plugin(t, "")
	spec := podOf(t, privileged).Spec
	for _, obj := range []core.Object{
		&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: spec}}},
		&corev1.PodTemplate{Template: corev1.PodTemplateSpec{Spec: spec}},
		&corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Template: &corev1.PodTemplateSpec{Spec: spec}}},
	} {
		warnings, err := asked(t, p, &admission.Attributes{Operation: admission.Create, Namespace: "strict", Object: obj})
		if err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0],
			`would violate PodSecurity "restricted:latest": host namespaces (hostNetwork=true), privileged (container "c"`) {
			t.Errorf("%T: %v, %q", obj, err, warnings)
		}
	}
	empty := &admission.Attributes{Operation: admission.Create, Namespace: "strict", Object: &corev1.ReplicationController{}}
	if warnings, err := asked(t, p, empty); err != nil || len(warnings) > 0 {
		t.Errorf("no template: %v, %q", err, warnings)
	}
}

func TestNamespaceLabels(t *testing.T) {
	in := func(name, spec string) *core.Pod {
		p := podOf(t, spec)
		p.Namespace, p.Name = "shop", name
		return p
	}
	vm := in("vm", privileged)
	vm.Spec.RuntimeClassName = new("vm")
	p := plugin(t, part,
		in("p3", privileged), in("p1", privileged), in("p2", privileged), in("q", "{hostPID: true, containers: [{name: c}]}"), in("fine", careful), vm)
	named := func(name string, labels ...string) *core.Namespace {
		n := &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
		for i := 0; i < len(labels); i += 2 {
			n.Labels[label+labels[i]] = labels[i+1]
		}
		return n
	}
	for name, c := range map[string]struct {
		now, old *core.Namespace
		err      string
		warnings []string
	}{
		"new": {now: named("shop", "enforce", "baseline", "enforce-version", "v1.999")},
		"new and wrong": {
			now: named("shop", "enforce", "bogus"),
			err: `Namespace "shop" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "bogus": must be one of privileged, baseline, restricted`,
		},
		"made wrong": {
			now: named("shop", "warn-version", "v1.2.3"), old: named("shop"),
			err: `Namespace "shop" is invalid: metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "v1.2.3": must be "latest" or "v1.x"`,
		},
		"wrong as before": {now: named("shop", "enforce", "bogus"), old: named("shop", "enforce", "bogus")},
		"stricter": {now: named("shop", "enforce", "baseline"), old: named("shop"), warnings: []string{
			`existing pods in namespace "shop" violate the new PodSecurity enforce level "baseline:latest"`,
			"p1 (and 2 other pods): host namespaces, privileged", "q: host namespaces",
		}},
		"as strict":   {now: named("shop", "enforce", "baseline", "warn", "restricted"), old: named("shop", "enforce", "baseline")},
		"less strict": {now: named("shop", "enforce", "baseline"), old: named("shop", "enforce", "restricted")},
		"as it was":   {now: named("shop", "enforce", "privileged"), old: named("shop")},
		"new, of no effect": {
			now:      named("exempt", "enforce", "restricted"),
			warnings: []string{`namespace "exempt" is exempt from Pod Security, and the policy (enforce=restricted:latest) will be ignored`},
		},
		"new and exempt": {now: named("exempt", "enforce", "privileged")},
		"partly privileged": {now: named("exempt", "enforce-version", "v1.20", "enforce", "baseline", "audit", "privileged", "warn-version", "v1.20", "warn",
			"baseline"), old: named("exempt"), warnings: []string{
			`namespace "exempt" is exempt from Pod Security, and the policy (enforce=baseline:v1.20, warn=baseline:v1.20) will be ignored`,
		}},
		"of no effect": {
			now: named("exempt", "enforce", "restricted"), old: named("exempt"),
			warnings: []string{`namespace "exempt" is exempt from Pod Security, and the policy (enforce=restricted:latest) will be ignored`},
		},
	} {
		a := &admission.Attributes{Operation: admission.Create, Object: c.now, Name: c.now.Name}
		if c.old != nil {
			a.Operation, a.OldObject = admission.Update, c.old
		}
		warnings, err := asked(t, p, a)
		switch {
		case c.err == "" && err != nil, c.err != "" && (err == nil || err.Error() != c.err || !apierrors.IsInvalid(err)):
			t.Errorf("%s: %v", name, err)
		case !slices.Equal(warnings, c.warnings):
			t.Errorf("%s: %q", name, warnings)
		}
	}
}

// TestManyPods: the answer takes bounded time, however many pods the namespace
// has.
func TestManyPods(t *testing.T) {
	many := manyPods{}
	p := plugin(t, "")
	p.pods = many
	warnings, _ := asked(t, p, &admission.Attributes{
		Operation: admission.Update,
		Object:    &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{label + "enforce": "baseline"}}},
		OldObject: &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
	})
	if len(warnings) != 1 || warnings[0] != "new PodSecurity enforce level only checked against the first 3000 of 5000 existing pods" {
		t.Errorf("%q", warnings)
	}
}

type manyPods struct{}

func (manyPods) List(context.Context, string, registry.ListOptions) (registry.List, error) {
	return registry.List{Items: make([]registry.Encoded, 5000)}, nil
}
func (manyPods) Decode(registry.Encoded) (core.Object, error) { return &core.Pod{}, nil }

func TestConfiguration(t *testing.T) {
	p := plugin(t, "{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: {enforce: baseline}}")
	if _, err := asked(t, p, &admission.Attributes{Operation: admission.Create, Namespace: "free", Object: podOf(t, privileged)}); err == nil ||
		err.Error() != refusal {
		t.Errorf("by default: %v", err)
	}
	for wrong, want := range map[string]string{
		"defaults: {enforce: bogus}":           `configuration of PodSecurity: defaults.enforce: Invalid value: "bogus": must be one of`,
		"defaults: {warn-version: bogus}":      `configuration of PodSecurity: defaults.warn-version: Invalid value: "bogus": must be`,
		"exemption: {}":                        "configuration of PodSecurity: ",
		"exemptions: {namespaces: [kube_a]}":   `configuration of PodSecurity: exemptions.namespaces[0]: Invalid value: "kube_a": `,
		"exemptions: {usernames: ['']}":        `configuration of PodSecurity: exemptions.usernames[0]: Invalid value: "": username must not be empty`,
		"exemptions: {runtimeClasses: [a, a]}": `configuration of PodSecurity: exemptions.runtimeClasses[1]: Duplicate value: "a"`,
	} {
		files := configuration.Files{Name: []byte("{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, " + wrong + "}")}
		if _, err := New(known, manyPods{}, files, prometheus.NewRegistry(), nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
