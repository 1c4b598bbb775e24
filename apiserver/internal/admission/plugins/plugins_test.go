package plugins

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/defaulttoleration"
	"kctl/apiserver/internal/quota"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// source is a resource with some objects. Objects under "live" are not in the
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

func (s *source) Create(_ context.Context, obj core.Object, _ registry.Admit, _ *metav1.CreateOptions) (registry.Encoded, error) {
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

// chain is every plugin over a small cluster.
// noRanges is a cluster without limit ranges.
type noRanges struct{}

func (noRanges) In(context.Context, string) ([]*corev1.LimitRange, error) { return nil, nil }
func (noRanges) Forget(string)                                            {}

func chain(t *testing.T, disable ...string) *admission.Chain {
	t.Helper()
	c, err := Chain(Objects{
		Namespaces: &source{resource: core.Namespaces,
			cached: map[string]core.Object{
				"/default": namespace("default", corev1.NamespaceActive), "/kube-node-lease": namespace("kube-node-lease", corev1.NamespaceActive),
				"/ending": namespace("ending", corev1.NamespaceTerminating), "/again": namespace("again", corev1.NamespaceTerminating),
			},
			live: map[string]core.Object{
				"/default": namespace("default", corev1.NamespaceActive), "/ending": namespace("ending", corev1.NamespaceTerminating),
				"/again": namespace("again", corev1.NamespaceActive), "/new": namespace("new", corev1.NamespaceActive),
			}},
		ServiceAccounts: &source{resource: core.ServiceAccounts, cached: map[string]core.Object{
			"default/default": account("default", func(sa *core.ServiceAccount) { sa.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}} }),
			"default/silent":  account("silent", func(sa *core.ServiceAccount) { sa.AutomountServiceAccountToken = ptr.To(false) }),
			"new/default":     account("default"), "again/default": account("default"),
			"default/strict": account("strict", func(sa *core.ServiceAccount) {
				sa.Annotations = map[string]string{"kubernetes.io/enforce-mountable-secrets": "true"}
			}),
		}},
		Pods: &source{resource: core.Pods, cached: map[string]core.Object{
			"default/mine":   pod(func(p *core.Pod) { p.Name = "mine"; p.Spec.NodeName = "n1"; withToken(p, "vault") }),
			"default/theirs": pod(func(p *core.Pod) { p.Name = "theirs"; p.Spec.NodeName = "n2" }),
			"default/inline": pod(func(p *core.Pod) {
				p.Name, p.Spec.NodeName = "inline", "n1"
				p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}}, {VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "gone"}}}}
			}),
			"default/claims": pod(func(p *core.Pod) {
				p.Name, p.Spec.NodeName = "claims", "n1"
				p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
			}),
		}},
		Claims: &source{cached: map[string]core.Object{"default/data": &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}}}},
		Volumes: &source{cached: map[string]core.Object{"/v": &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d"}}}}}},
		CSIDrivers:     &source{cached: map[string]core.Object{"/d": &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: "vault"}}}}}},
		Nodes:          &source{resource: core.Nodes, cached: map[string]core.Object{"/n1": &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node-uid"}}}},
		RuntimeClasses: runtimeClasses(), PriorityClasses: priorityClasses(), DefaultPriority: defaults{}, LimitRanges: noRanges{}, Quotas: noQuotas{}, QuotaRules: noQuotas{},
	}, Settings{
		Clock: testingclock.NewFakeClock(time.Unix(0, 0)), Disable: disable,
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
	if *sources[0].ServiceAccountToken.ExpirationSeconds != 3607 || sources[1].ConfigMap.Name != "kube-root-ca.crt" || sources[2].DownwardAPI.Items[0].Path != "namespace" {
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
	if got := p.Spec.Tolerations; len(got) != 2 || *got[0].TolerationSeconds != 300 || got[0].Key != corev1.TaintNodeNotReady || got[1].Key != corev1.TaintNodeUnreachable || *got[1].TolerationSeconds != 200 {
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
		"no account":             {in("default", uses("nobody")), `pods "web" is forbidden: error looking up service account default/nobody: serviceaccount "nobody" not found`},
		"silent account":         {in("default", uses("silent")), ""},
		"secret not listed": {in("default", uses("strict"), func(p *core.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}
		}), `pods "web" is forbidden: volume with secret.secretName="s" is not allowed because service account strict does not reference that secret`},
		"mirror with an account": {in("default", uses("default"), func(p *core.Pod) {
			p.Annotations = map[string]string{core.ConfigMirrorAnnotation: "x"}
		}), `pods "web" is forbidden: a mirror pod may not reference service accounts`},
		"unknown class":    {in("default", func(p *core.Pod) { p.Spec.PriorityClassName = "vip" }), `pods "web" is forbidden: no PriorityClass with name vip was found`},
		"system class":     {in("default", func(p *core.Pod) { p.Spec.PriorityClassName = "system-node-critical" }), ""},
		"priority by hand": {in("default", func(p *core.Pod) { p.Spec.Priority = ptr.To[int32](7) }), `pods "web" is forbidden: the integer value of priority (7) must not be provided in pod spec`},
	} {
		check(t, name, chain(t).Admit(t.Context(), c.a), c.want)
	}
	err := chain(t).Admit(t.Context(), in("ending"))
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("the refusal has no cause for programs: %v", err)
	}
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

// TestDefaultAccountIsWaitedFor: the loop that makes it may be a moment late.
func TestDefaultAccountIsWaitedFor(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	accounts := &source{resource: core.ServiceAccounts, cached: map[string]core.Object{}}
	c, err := Chain(Objects{
		Namespaces:      &source{cached: map[string]core.Object{"/default": namespace("default", corev1.NamespaceActive)}},
		ServiceAccounts: accounts, Pods: &source{}, PriorityClasses: priorityClasses(), DefaultPriority: defaults{}, LimitRanges: noRanges{}, Quotas: noQuotas{}, QuotaRules: noQuotas{},
	}, Settings{Clock: clock})
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

func TestNodeRestriction(t *testing.T) {
	node := &request.User{Username: "system:node:n1", Groups: []string{core.GroupNodes}}
	on := func(op admission.Operation, resource core.Resource, subresource, name string, obj, old core.Object) *admission.Attributes {
		a := &admission.Attributes{Operation: op, Resource: resource, Subresource: subresource, Name: name, User: node}
		if obj != nil {
			a.Object, a.Namespace = obj, obj.GetNamespace()
		}
		if old != nil {
			a.OldObject, a.Namespace = old, old.GetNamespace()
		}
		return a
	}
	n := func(name string, change ...func(*core.Node)) *core.Node {
		n := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, c := range change {
			c(n)
		}
		return n
	}
	label := func(key string) func(*core.Node) {
		return func(n *core.Node) { n.Labels = map[string]string{key: "x"} }
	}
	mirror := func(node string) *core.Pod {
		return pod(func(p *core.Pod) {
			p.Annotations = map[string]string{core.ConfigMirrorAnnotation: "x"}
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: "node-uid", Controller: ptr.To(true)}}
			p.Spec.NodeName = node
		})
	}
	mirrorWith := func(source corev1.VolumeSource) *core.Pod {
		p := mirror("n1")
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}}
		return p
	}
	onNode := func(node string) *core.Pod { return pod(func(p *core.Pod) { p.Spec.NodeName = node }) }
	lease := func(namespace, name string) *core.Lease {
		return &core.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	token := func(pod, uid string, audiences ...string) *authenticationv1.TokenRequest {
		r := &authenticationv1.TokenRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
		if pod != "" {
			r.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod}
			r.Spec.BoundObjectRef.UID = "u1"
			if uid != "u1" {
				r.Spec.BoundObjectRef.UID = ""
			}
		}
		return r
	}
	for name, c := range map[string]struct {
		a    *admission.Attributes
		want string
	}{
		"its node":            {on(admission.Create, core.Nodes, "", "n1", n("n1"), nil), ""},
		"another node":        {on(admission.Create, core.Nodes, "", "n2", n("n2"), nil), `nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"`},
		"its labels":          {on(admission.Update, core.Nodes, "", "n1", n("n1", label("node.kubernetes.io/x")), n("n1")), ""},
		"labels of the admin": {on(admission.Update, core.Nodes, "", "n1", n("n1", label("node-restriction.kubernetes.io/x")), n("n1")), `nodes "n1" is forbidden: is not allowed to modify labels: node-restriction.kubernetes.io/x`},
		"a role":              {on(admission.Update, core.Nodes, "", "n1", n("n1", label("node-role.kubernetes.io/control-plane")), n("n1")), `nodes "n1" is forbidden: is not allowed to modify labels`},
		"taints": {on(admission.Update, core.Nodes, "", "n1", n("n1"), n("n1", func(n *core.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} })),
			`nodes "n1" is forbidden: node "n1" is not allowed to modify taints`},
		"mirror pod":           {on(admission.Create, core.Pods, "", "web", mirror("n1"), nil), ""},
		"mirror pod elsewhere": {on(admission.Create, core.Pods, "", "web", mirror("n2"), nil), `pods "web" is forbidden: node "n1" can only create pods with spec.nodeName set to itself`},
		"mirror pod for a driver's secret": {on(admission.Create, core.Pods, "", "web", mirrorWith(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: "d", NodePublishSecretRef: &corev1.LocalObjectReference{Name: "key"}}}), nil), `pods "web" is forbidden: node "n1" can not create pods that reference secrets`},
		"mirror pod for a driver": {on(admission.Create, core.Pods, "", "web", mirrorWith(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}), nil),
			`pods "web" is forbidden: node "n1" can not create pods that reference csidrivers (via CSI volumes)`},
		"mirror pod for a secret": {on(admission.Create, core.Pods, "", "web", mirrorWith(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: "key"}}), nil), `pods "web" is forbidden: node "n1" can not create pods that reference secrets`},
		"mirror pod with a claim of its own": {on(admission.Create, core.Pods, "", "web", mirrorWith(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}), nil),
			`pods "web" is forbidden: node "n1" can not create pods that reference persistentvolumeclaims`},
		"a pod":                      {on(admission.Create, core.Pods, "", "web", onNode("n1"), nil), `pods "web" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation`},
		"status of its pod":          {on(admission.Update, core.Pods, "status", "web", onNode("n1"), onNode("n1")), ""},
		"status of another's":        {on(admission.Update, core.Pods, "status", "web", onNode("n1"), onNode("n2")), `pods "web" is forbidden: node "n1" can only update pod status for pods with spec.nodeName set to itself`},
		"spec of its pod":            {on(admission.Update, core.Pods, "", "web", onNode("n1"), onNode("n1")), `pods "web" is forbidden: unexpected operation "UPDATE"`},
		"its pod's end":              {on(admission.Delete, core.Pods, "", "mine", nil, onNode("n1")), ""},
		"another's end":              {on(admission.Delete, core.Pods, "", "theirs", nil, onNode("n2")), `pods "theirs" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself`},
		"its lease":                  {on(admission.Create, core.Leases, "", "n1", lease("kube-node-lease", "n1"), nil), ""},
		"another's lease":            {on(admission.Create, core.Leases, "", "n2", lease("kube-node-lease", "n2"), nil), `leases.coordination.k8s.io "n2" is forbidden: can only access node lease with the same name`},
		"a leader's lease":           {on(admission.Update, core.Leases, "", "n1", lease("default", "n1"), lease("default", "n1")), `leases.coordination.k8s.io "n1" is forbidden: can only access leases in the "kube-node-lease" system namespace`},
		"token for its pod":          {on(admission.Create, core.ServiceAccounts, "token", "default", token("mine", "u1", "vault"), nil), ""},
		"token, other audience":      {on(admission.Create, core.ServiceAccounts, "token", "default", token("mine", "u1", "bank"), nil), `serviceaccounts "default" is forbidden: audience "bank" not found in pod spec volume`},
		"token for a driver":         {on(admission.Create, core.ServiceAccounts, "token", "default", token("inline", "u1", "vault"), nil), ""},
		"token no driver asked for":  {on(admission.Create, core.ServiceAccounts, "token", "default", token("inline", "u1", "bank"), nil), `serviceaccounts "default" is forbidden: audience "bank" not found in pod spec volume`},
		"token for a claim's driver": {on(admission.Create, core.ServiceAccounts, "token", "default", token("claims", "u1", "vault"), nil), ""},
		"token not for a claim's":    {on(admission.Create, core.ServiceAccounts, "token", "default", token("claims", "u1", "bank"), nil), `serviceaccounts "default" is forbidden: audience "bank" not found in pod spec volume`},
		"token for another's":        {on(admission.Create, core.ServiceAccounts, "token", "default", token("theirs", "u1"), nil), `serviceaccounts "default" is forbidden: node requested token bound to a pod scheduled on a different node`},
		"token for nobody":           {on(admission.Create, core.ServiceAccounts, "token", "default", token("", ""), nil), `serviceaccounts "default" is forbidden: node requested token not bound to a pod`},
		"token without a uid":        {on(admission.Create, core.ServiceAccounts, "token", "default", token("mine", ""), nil), `serviceaccounts "default" is forbidden: node requested token with a pod binding without a uid`},
	} {
		check(t, name, chain(t, "NamespaceLifecycle", "ServiceAccount", "TaintNodesByCondition", "PodTopologyLabels").Admit(t.Context(), c.a), c.want)
	}
	stranger := on(admission.Delete, core.Pods, "", "theirs", nil, onNode("n2"))
	stranger.User = &request.User{Username: "admin"}
	check(t, "somebody who is no node", chain(t).Admit(t.Context(), stranger), "")
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

type noQuotas struct{}

func (noQuotas) Reserve(context.Context, quota.Change) error                 { return nil }
func (noQuotas) In(context.Context, string) ([]*corev1.ResourceQuota, error) { return nil, nil }
func (noQuotas) Forget(string)                                               {}
