package resources_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/clock"

	tokens "kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/kubeletclient"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources"
	"kctl/apiserver/internal/resources/networking"
	"kctl/apiserver/internal/resources/service"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

// bed has the stores of all resources, over a real etcd.
type bed struct {
	*resources.Set
	t      *testing.T
	raw    storage.Interface
	served []registry.Served
}

// issuer returns its parameters instead of a signed token.
type issuer struct{ bound tokens.Bound }

func (i *issuer) MostSeconds() int64 { return 0 }

func (i *issuer) Audiences() []string { return []string{"api"} }

func (i *issuer) Token(_ context.Context, sa *core.ServiceAccount, spec authenticationv1.TokenRequestSpec, bound tokens.Bound) (string, time.Time, error) {
	i.bound = bound
	return "token of " + sa.Name, time.Unix(*spec.ExpirationSeconds, 0), nil
}

// start opens a server's resources, with these ranges for services' addresses.
func start(t *testing.T, ranges ...string) *bed {
	t.Helper()
	if len(ranges) == 0 {
		ranges = []string{"10.0.0.0/28"}
	}
	return startOn(t, etcdtest.Start(t), utilnet.PortRange{Base: 30000, Size: 4}, ranges...)
}

// startOn opens a server's resources in this storage, with these ranges for services' node ports and addresses.
func startOn(t *testing.T, raw storage.Interface, ports utilnet.PortRange, ranges ...string) *bed {
	t.Helper()
	var addresses []netip.Prefix
	for _, r := range ranges {
		addresses = append(addresses, netip.MustParsePrefix(r))
	}
	set := resources.New(registry.Options{Storage: raw, Clock: clock.RealClock{}, Logger: zaptest.NewLogger(t)}, time.Hour, service.Ranges{
		Addresses: addresses, NodePorts: ports,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- set.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("stores ended with %v", err)
		}
	})
	if err := set.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := networking.Bootstrap(t.Context(), set.ServiceCIDRs, addresses, metav1.Now()); err != nil {
		t.Fatal(err)
	}
	kubelets, err := kubeletclient.New(kubeletclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kubelets.Close)
	return &bed{Set: set, t: t, raw: raw, served: set.Served(kubelets, &issuer{})}
}

// create posts to a subresource.
func (b *bed) create(resource core.Resource, subresource, name string, obj runtime.Object) (runtime.Object, error) {
	b.t.Helper()
	for _, served := range b.served {
		if served.Resource.Info().Resource != resource {
			continue
		}
		for _, sub := range served.Subresources {
			if sub.Name == subresource {
				return sub.Create(b.t.Context(), "default", name, obj, &metav1.CreateOptions{})
			}
		}
	}
	b.t.Fatalf("%s/%s is not served", resource.Name, subresource)
	return nil, nil
}

func (b *bed) pod(name string, change ...func(*core.Pod)) *core.Pod {
	b.t.Helper()
	pod := &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       core.PodSpec{ServiceAccountName: "default", Containers: []core.Container{{Name: "main", Image: "nginx"}}},
	}
	for _, c := range change {
		c(pod)
	}
	created, err := b.Pods.CreateTyped(b.t.Context(), pod)
	if err != nil {
		b.t.Fatal(err)
	}
	return created
}

func bindTo(pod, node string) *core.Binding {
	return &core.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Annotations: map[string]string{"placed": "well"}},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
}

func TestBinding(t *testing.T) {
	b := start(t)
	pod := b.pod("web")
	if _, err := b.create(core.Pods, "binding", "web", bindTo("web", "n1")); err != nil {
		t.Fatal(err)
	}
	bound, err := registry.GetStored[*core.Pod](t.Context(), b.Pods, "default", "web")
	if err != nil {
		t.Fatal(err)
	}
	if bound.Spec.NodeName != "n1" || bound.Annotations["placed"] != "well" {
		t.Errorf("bound pod has node %q and annotations %v", bound.Spec.NodeName, bound.Annotations)
	}
	if c := bound.Status.Conditions; len(c) != 1 || c[0].Type != corev1.PodScheduled || c[0].Status != corev1.ConditionTrue || c[0].LastTransitionTime.IsZero() {
		t.Errorf("bound pod's conditions are %+v", c)
	}
	if pod.Generation != 1 || bound.Generation != 1 {
		t.Errorf("generation went from %d to %d; placing a pod is not the user's change", pod.Generation, bound.Generation)
	}

	b.pod("gated", func(p *core.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} })
	b.pod("other")
	// A finalizer keeps a pod even if it was never bound.
	b.pod("ending", func(p *core.Pod) { p.Finalizers = []string{"example.com/keep"} })
	if err := b.Pods.DeleteTyped(t.Context(), "default", "ending", nil); err != nil {
		t.Fatal(err)
	}
	wrongUID := bindTo("other", "n1")
	wrongUID.UID = "nobody"
	toPod := bindTo("other", "n1")
	toPod.Target.Kind = "Pod"
	for name, c := range map[string]struct {
		binding *core.Binding
		is      func(error) bool
	}{
		"bound":       {bindTo("web", "n2"), apierrors.IsConflict},
		"gated":       {bindTo("gated", "n1"), apierrors.IsConflict},
		"ending":      {bindTo("ending", "n1"), apierrors.IsConflict},
		"missing":     {bindTo("missing", "n1"), apierrors.IsNotFound},
		"another pod": {wrongUID, apierrors.IsConflict},
		"to a pod":    {toPod, apierrors.IsInvalid},
		"to nowhere":  {bindTo("other", ""), apierrors.IsInvalid},
		"to no name":  {bindTo("other", "a b"), apierrors.IsInvalid},
	} {
		if _, err := b.create(core.Pods, "binding", c.binding.Name, c.binding); !c.is(err) {
			t.Errorf("binding a pod that is %s: %v", name, err)
		}
	}
}

// TestPodsEnd: a bound pod stays until its kubelet deletes it.
func TestPodsEnd(t *testing.T) {
	b := start(t)
	ctx := t.Context()
	b.pod("unbound")
	b.pod("web")
	if _, err := b.create(core.Pods, "binding", "web", bindTo("web", "n1")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"unbound", "web"} {
		if err := b.Pods.DeleteTyped(ctx, "default", name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := registry.GetStored[*core.Pod](ctx, b.Pods, "default", "unbound"); !apierrors.IsNotFound(err) {
		t.Errorf("a pod without a node is still there: %v", err)
	}
	web, err := registry.GetStored[*core.Pod](ctx, b.Pods, "default", "web")
	if err != nil || web.DeletionTimestamp == nil || *web.DeletionGracePeriodSeconds != 30 {
		t.Fatalf("the bound pod: %+v, %v", web.ObjectMeta, err)
	}
	if _, err := b.create(core.Pods, "binding", "web", bindTo("web", "n1")); !apierrors.IsConflict(err) {
		t.Errorf("binding an ending pod: %v", err)
	}
	zero := metav1.NewDeleteOptions(0)
	zero.Preconditions = metav1.NewUIDPreconditions(string(web.UID))
	if err := b.Pods.DeleteTyped(ctx, "default", "web", zero); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.GetStored[*core.Pod](ctx, b.Pods, "default", "web"); !apierrors.IsNotFound(err) {
		t.Errorf("the kubelet deleted it and it is still there: %v", err)
	}
}

func TestEviction(t *testing.T) {
	b := start(t)
	b.pod("web")
	if _, err := b.create(core.Pods, "binding", "web", bindTo("web", "n1")); err != nil {
		t.Fatal(err)
	}
	other := &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: "web"}, DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("nobody")},
	}
	if _, err := b.create(core.Pods, "eviction", "web", other); !apierrors.IsConflict(err) {
		t.Errorf("evicting a pod by another's uid: %v", err)
	}
	if _, err := b.create(core.Pods, "eviction", "web", &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web"}}); err != nil {
		t.Fatal(err)
	}
	web, err := registry.GetStored[*core.Pod](t.Context(), b.Pods, "default", "web")
	if err != nil || web.DeletionTimestamp == nil {
		t.Fatalf("an evicted pod does not end: %v", err)
	}
	found := false
	for _, c := range web.Status.Conditions {
		found = found || c.Type == corev1.DisruptionTarget && c.Reason == "EvictionByEvictionAPI"
	}
	if !found {
		t.Errorf("an evicted pod doesn't say why it ends: %+v", web.Status.Conditions)
	}
}

func TestNamespacesEnd(t *testing.T) {
	b := start(t)
	ctx := t.Context()
	if _, err := b.Namespaces.CreateTyped(ctx, &core.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}); err != nil {
		t.Fatal(err)
	}
	list, _, err := b.Namespaces.ListTyped(ctx, "", registry.ListOptions{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d namespaces, %v", len(list), err)
	}
	name := list[0].Name
	if list[0].Labels[corev1.LabelMetadataName] != name || list[0].Status.Phase != corev1.NamespaceActive || len(list[0].Spec.Finalizers) != 1 {
		t.Errorf("a new namespace is %+v", list[0])
	}
	for range 2 { // a second time changes nothing
		if err := b.Namespaces.DeleteTyped(ctx, "", name, nil); err != nil {
			t.Fatal(err)
		}
	}
	ns, err := registry.GetStored[*core.Namespace](ctx, b.Namespaces, "", name)
	if err != nil || ns.Status.Phase != corev1.NamespaceTerminating || ns.DeletionTimestamp == nil {
		t.Fatalf("a deleted namespace is %+v, %v", ns, err)
	}
	_, err = b.Namespaces.UpdateTyped(ctx, "", name, "finalize", func(ns *core.Namespace) error {
		ns.Spec.Finalizers = nil
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registry.GetStored[*core.Namespace](ctx, b.Namespaces, "", name); !apierrors.IsNotFound(err) {
		t.Errorf("a finalized namespace is still there: %v", err)
	}
}

func TestTokens(t *testing.T) {
	b := start(t)
	account := &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "default"}}
	if _, err := b.ServiceAccounts.CreateTyped(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	pod := b.pod("web")
	b.pod("stranger", func(p *core.Pod) { p.Spec.ServiceAccountName = "other" })
	request := func(seconds *int64, name string, uid types.UID) *authenticationv1.TokenRequest {
		r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: seconds}}
		if name != "" {
			r.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: name, UID: uid}
		}
		return r
	}
	answer, err := b.create(core.ServiceAccounts, "token", "default", request(nil, "web", pod.UID))
	if err != nil {
		t.Fatal(err)
	}
	issued := answer.(*authenticationv1.TokenRequest)
	if issued.Status.Token != "token of default" || *issued.Spec.ExpirationSeconds != 3600 || issued.Spec.Audiences[0] != "api" {
		t.Errorf("issued %+v", issued)
	}
	configMap, unversioned, attested := request(nil, "web", ""), request(nil, "web", ""), request(nil, "", "")
	configMap.Spec.BoundObjectRef.Kind = "ConfigMap"
	unversioned.Spec.BoundObjectRef.APIVersion = "" // kube-apiserver v1.37.2 looks only at group and kind
	if _, err := b.create(core.ServiceAccounts, "token", "default", unversioned); err != nil {
		t.Errorf("bound to a pod of no version: %v", err)
	}
	attested.Spec.Attestations = map[string]authenticationv1.AttestationValue{authenticationv1.AttestationAdmissionReviewAPIGroups: {"apps"}}
	for name, c := range map[string]struct {
		account string
		request *authenticationv1.TokenRequest
		is      func(error) bool
	}{
		"too short":          {"default", request(new(int64(60)), "", ""), apierrors.IsInvalid},
		"too long":           {"default", request(new(int64(1<<33)), "", ""), apierrors.IsInvalid},
		"no such account":    {"nobody", request(nil, "", ""), apierrors.IsNotFound},
		"no such pod":        {"default", request(nil, "gone", ""), apierrors.IsNotFound},
		"another pod's uid":  {"default", request(nil, "web", "nobody"), apierrors.IsConflict},
		"another's pod":      {"default", request(nil, "stranger", ""), apierrors.IsBadRequest},
		"bound to something": {"default", configMap, apierrors.IsBadRequest},
		"attestations":       {"default", attested, apierrors.IsInvalid},
	} {
		if _, err := b.create(core.ServiceAccounts, "token", c.account, c.request); !c.is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKeys: objects are stored under upstream's keys.
func TestKeys(t *testing.T) {
	b := start(t)
	ctx := t.Context()
	meta := metav1.ObjectMeta{Name: "x", Namespace: "default"}
	if _, err := b.Nodes.CreateTyped(ctx, &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}); err != nil {
		t.Fatal(err)
	}
	secret := &core.Secret{ObjectMeta: meta, StringData: map[string]string{"a": "b"}}
	if _, err := b.Secrets.CreateTyped(ctx, secret); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Leases.CreateTyped(ctx, &core.Lease{ObjectMeta: meta}); err != nil {
		t.Fatal(err)
	}
	b.pod("x")
	for _, key := range []string{"/registry/minions/x", "/registry/secrets/default/x", "/registry/leases/default/x", "/registry/pods/default/x"} {
		if _, err := b.raw.Get(ctx, key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	stored, err := registry.GetStored[*core.Secret](ctx, b.Secrets, "default", "x")
	if err != nil || string(stored.Data["a"]) != "b" || stored.StringData != nil {
		t.Errorf("stringData is stored as %+v, %v", stored, err)
	}
}
