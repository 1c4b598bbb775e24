package plugins

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

func TestNewPodIsCompleted(t *testing.T) {
	p := pod(func(p *core.Pod) {
		p.Spec.InitContainers = []core.Container{{Name: "init", Image: "i"}}
		p.Spec.Containers = append(p.Spec.Containers, core.Container{Name: "own", VolumeMounts: []corev1.VolumeMount{
			{Name: "v", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"},
		}})
	})
	if err := chain(t).Admit(t.Context(), create(core.Pods, p)); err != nil {
		t.Fatal(err)
	}
	if p.Spec.ServiceAccountName != "default" || p.Spec.DeprecatedServiceAccount != "default" {
		t.Errorf("account is %q and %q", p.Spec.ServiceAccountName, p.Spec.DeprecatedServiceAccount)
	}
	if len(p.Spec.Volumes) != 1 || !strings.HasPrefix(p.Spec.Volumes[0].Name, "kube-api-access-") || len(p.Spec.Volumes[0].Name) != len("kube-api-access-")+5 {
		t.Fatalf("volumes are %+v", p.Spec.Volumes)
	}
	sources := p.Spec.Volumes[0].Projected.Sources
	if *sources[0].ServiceAccountToken.ExpirationSeconds != 3607 || sources[1].ConfigMap.Name != "kube-root-ca.crt" ||
		sources[2].DownwardAPI.Items[0].Path != "namespace" {
		t.Errorf("token volume is made of %+v", sources)
	}
	for _, c := range []core.Container{p.Spec.InitContainers[0], p.Spec.Containers[0]} {
		if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].Name != p.Spec.Volumes[0].Name || !c.VolumeMounts[0].ReadOnly {
			t.Errorf("container %s mounts %+v", c.Name, c.VolumeMounts)
		}
	}
	if own := p.Spec.Containers[1].VolumeMounts; len(own) != 1 || own[0].Name != "v" {
		t.Errorf("a container that has its own mount there got %+v", own)
	}
	if len(p.Spec.ImagePullSecrets) != 1 || p.Spec.ImagePullSecrets[0].Name != "pull" {
		t.Errorf("pull secrets are %+v", p.Spec.ImagePullSecrets)
	}
	if *p.Spec.Priority != 0 || *p.Spec.PreemptionPolicy != corev1.PreemptLowerPriority {
		t.Errorf("priority %d, %s", *p.Spec.Priority, *p.Spec.PreemptionPolicy)
	}
	if got := p.Spec.Tolerations; len(got) != 2 || *got[0].TolerationSeconds != 300 || got[0].Key != corev1.TaintNodeNotReady ||
		got[1].Key != corev1.TaintNodeUnreachable || *got[1].TolerationSeconds != 200 {
		t.Errorf("tolerations are %+v", got)
	}
}

func TestNewNodeIsTainted(t *testing.T) {
	n := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	for range 2 {
		if err := chain(t).Admit(t.Context(), create(core.Nodes, n)); err != nil {
			t.Fatal(err)
		}
	}
	if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != corev1.TaintNodeNotReady || n.Spec.Taints[0].Effect != corev1.TaintEffectNoSchedule {
		t.Errorf("taints are %+v", n.Spec.Taints)
	}
}

func TestRefusals(t *testing.T) {
	in := func(namespace string, change ...func(*core.Pod)) *admission.Attributes {
		p := pod(change...)
		p.Namespace = namespace
		return create(core.Pods, p)
	}
	uses := func(account string) func(*core.Pod) { return func(p *core.Pod) { p.Spec.ServiceAccountName = account } }
	deletion := func(name string) *admission.Attributes {
		return &admission.Attributes{Operation: admission.Delete, Resource: core.Namespaces, Name: name}
	}
	for name, c := range map[string]struct {
		a    *admission.Attributes
		want string // "" for admitted
	}{
		"ordinary":               {in("default"), ""},
		"no namespace":           {in("none"), `namespaces "none" not found`},
		"namespace a moment old": {in("new"), ""},
		"namespace made again":   {in("again"), ""},
		"ending namespace":       {in("ending"), `pods "web" is forbidden: unable to create new content in namespace ending because it is being terminated`},
		"default namespace":      {deletion("default"), `namespaces "default" is forbidden: this namespace may not be deleted`},
		"kube-system":            {deletion("kube-system"), `namespaces "kube-system" is forbidden: this namespace may not be deleted`},
		"another namespace":      {deletion("team"), ""},
		"no account": {in("default", uses("nobody")),
			`pods "web" is forbidden: error looking up service account default/nobody: serviceaccount "nobody" not found`},
		"silent account": {in("default", uses("silent")), ""},
		"secret not listed": {in("default", uses("strict"), func(p *core.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}
		}), `pods "web" is forbidden: volume with secret.secretName="s" is not allowed because service account strict does not reference that secret`},
		"mirror with an account": {in("default", uses("default"), func(p *core.Pod) {
			p.Annotations = map[string]string{core.ConfigMirrorAnnotation: "x"}
		}), `pods "web" is forbidden: a mirror pod may not reference service accounts`},
		"mirror with a secret": {in("default", func(p *core.Pod) {
			p.Annotations = map[string]string{core.ConfigMirrorAnnotation: "x"}
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
		}), `pods "web" is forbidden: a mirror pod may not reference secrets`},
		"mirror with a token": {in("default", func(p *core.Pod) {
			p.Annotations = map[string]string{core.ConfigMirrorAnnotation: "x"}
			withToken(p, "vault")
		}), `pods "web" is forbidden: a mirror pod may not use ServiceAccountToken volume projections`},
		"unknown class": {in("default", func(p *core.Pod) { p.Spec.PriorityClassName = "vip" }),
			`pods "web" is forbidden: no PriorityClass with name vip was found`},
		"system class": {in("default", func(p *core.Pod) { p.Spec.PriorityClassName = "system-node-critical" }), ""},
		"priority by hand": {in("default", func(p *core.Pod) { p.Spec.Priority = new(int32(7)) }),
			`pods "web" is forbidden: the integer value of priority (7) must not be provided in pod spec`},
	} {
		check(t, name, chain(t).Admit(t.Context(), c.a), c.want)
	}
	err := chain(t).Admit(t.Context(), in("ending"))
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("the refusal has no cause for programs: %v", err)
	}
}

// TestOnlyMountableSecrets: an account's restriction also applies to what
// webhooks add to a pod, and to containers added later.
func TestOnlyMountableSecrets(t *testing.T) {
	const refused = ` is not allowed because service account strict does not reference that `
	variable := []corev1.EnvVar{{
		Name: "v", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}},
	}}
	from := []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
	for name, test := range map[string]struct {
		change func(*core.PodSpec)
		later  bool
		want   string
	}{
		"variable": {func(s *core.PodSpec) { s.Containers = []core.Container{{Name: "c", Env: variable}} }, false,
			`container c with envVar v referencing secret.secretName="s"` + refused + "secret"},
		"variables of init": {func(s *core.PodSpec) { s.InitContainers = []core.Container{{Name: "c", EnvFrom: from}} }, false,
			`init container c with envFrom referencing secret.secretName="s"` + refused + "secret"},
		"pull secret": {func(s *core.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}} }, false,
			`imagePullSecrets[0].name="s"` + refused + "imagePullSecret"},
		"ephemeral variable": {func(s *core.PodSpec) { s.EphemeralContainers = ephemeral(variable, nil) }, true,
			`ephemeral container e with envVar v referencing secret.secretName="s"` + refused + "secret"},
		"ephemeral": {func(s *core.PodSpec) { s.EphemeralContainers = ephemeral(nil, from) }, true,
			`ephemeral container e with envFrom referencing secret.secretName="s"` + refused + "secret"},
		"ephemeral, nothing": {func(s *core.PodSpec) { s.EphemeralContainers = ephemeral(nil, nil) }, true, ""},
		"true in other words": {func(s *core.PodSpec) {
			s.ServiceAccountName, s.ImagePullSecrets = "strict-1", []corev1.LocalObjectReference{{Name: "s"}}
		}, false, `imagePullSecrets[0].name="s" is not allowed because service account strict-1 does not reference that imagePullSecret`},
		"what it had before": {func(s *core.PodSpec) { s.Containers = []core.Container{{Name: "c", Env: variable}} }, true, ""},
	} {
		p := pod(func(p *core.Pod) { p.Spec.ServiceAccountName = "strict" })
		test.change(&p.Spec)
		a := create(core.Pods, p)
		if test.later {
			a.Operation, a.Subresource, a.OldObject = admission.Update, "ephemeralcontainers", pod()
		}
		want := test.want
		if want != "" {
			want = `pods "web" is forbidden: ` + want
		}
		check(t, name, chain(t).Validate(t.Context(), a), want)
	}
}

func ephemeral(variables []corev1.EnvVar, sources []corev1.EnvFromSource) []corev1.EphemeralContainer {
	return []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e", Env: variables, EnvFrom: sources}}}
}

func check(t *testing.T, name string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: refused: %v", name, err)
	case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
		t.Errorf("%s:\n  got: %v\n want: %s", name, err, want)
	}
}

func TestSilentAccountMountsNothing(t *testing.T) {
	p := pod(func(p *core.Pod) { p.Spec.ServiceAccountName = "silent" })
	if err := chain(t).Admit(t.Context(), create(core.Pods, p)); err != nil {
		t.Fatal(err)
	}
	if len(p.Spec.Volumes) != 0 {
		t.Errorf("volumes are %+v", p.Spec.Volumes)
	}
}

// TestDefaultAccountIsWaitedFor: the controller that creates it may be a moment
// late.
func TestDefaultAccountIsWaitedFor(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	accounts := &source{resource: core.ServiceAccounts, cached: map[string]core.Object{}}
	c, err := Chain(Objects{
		Store: stores(
			&source{resource: core.Namespaces, cached: map[string]core.Object{"/default": namespace("default", corev1.NamespaceActive)}},
			accounts, priorityClasses(),
		), DefaultPriority: defaults{}, LimitRanges: noRanges{}, Quotas: noQuotas{}, QuotaRules: noQuotas{},
	}, Settings{Metrics: prometheus.NewRegistry(), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { done <- c.Admit(ctx, create(core.Pods, pod())) }()
	for {
		select {
		case err := <-done:
			check(t, "after all attempts", err, `pods "web" is forbidden: error looking up service account default/default: serviceaccount "default" not found`)
			if accounts.asked < 10 {
				t.Errorf("asked %d times", accounts.asked)
			}
			return
		default:
			if clock.HasWaiters() {
				clock.Step(time.Second)
			}
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		enable, disable []string
		want            string
	}{
		{nil, nil, ""},
		{[]string{"Priority"}, []string{"ServiceAccount"}, ""},
		{[]string{"ImagePolicyWebhook"}, nil, ""},
		{nil, []string{"nonsense"}, `admission plugin "nonsense" is not one`},
		{[]string{"Priority"}, []string{"Priority"}, `admission plugin "Priority" is both enabled and disabled`},
	} {
		check(t, strings.Join(append(c.enable, c.disable...), ","), validate(c.enable, c.disable), c.want)
	}
	if _, err := Chain(Objects{}, Settings{Enable: []string{"nonsense"}}); err == nil || errors.Is(err, context.Canceled) {
		t.Error("an unknown name makes a chain")
	}
}

// TestMissingResource: a plugin that looks for a resource which the server does not have
// is an error at the start, and not at the first request.
func TestMissingResource(t *testing.T) {
	without := func(r core.Resource) Store {
		if r == core.PriorityClasses {
			return nil
		}
		return stores()(r)
	}
	settings := Settings{Metrics: prometheus.NewRegistry(), Clock: testingclock.NewFakeClock(time.Unix(0, 0))}
	_, err := Chain(Objects{Store: without}, settings)
	check(t, "no priority classes", err, "admission: there are no priorityclasses")
	settings.Metrics, settings.Disable = prometheus.NewRegistry(), []string{"Priority"}
	if _, err = Chain(Objects{Store: without, LimitRanges: noRanges{}, Quotas: noQuotas{}, QuotaRules: noQuotas{}}, settings); err != nil {
		t.Errorf("no plugin looks for them: %v", err)
	}
}
