package resources_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

func newService(name string, change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func typed(t corev1.ServiceType) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Type = t }
}

func at(ip string) func(*corev1.Service) { return func(s *corev1.Service) { s.Spec.ClusterIP = ip } }

func (b *bed) service(s *corev1.Service, dryRun ...string) (*corev1.Service, error) {
	b.t.Helper()
	e, err := b.Services.Create(b.t.Context(), s, registry.Admission{}, &metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		return nil, err
	}
	obj, err := b.Services.Decode(e)
	if err != nil {
		b.t.Fatal(err)
	}
	return obj.(*corev1.Service), nil
}

func (b *bed) change(name string, change func(*corev1.Service)) (*corev1.Service, error) {
	b.t.Helper()
	e, _, err := b.Services.Update(b.t.Context(), registry.Target{Namespace: "default", Name: name}, func(current core.Object) (core.Object, error) {
		change(current.(*corev1.Service))
		return current, nil
	}, registry.Admission{}, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	obj, err := b.Services.Decode(e)
	if err != nil {
		b.t.Fatal(err)
	}
	return obj.(*corev1.Service), nil
}

func (b *bed) held() int {
	b.t.Helper()
	all, _, err := b.IPAddresses.ListTyped(b.t.Context(), "", registry.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return len(all)
}

// refused checks an error's message.
func refused(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s:\n  got: %v\n want: %s", what, err, want)
	}
}

func TestServiceAddresses(t *testing.T) {
	b := start(t)
	web, err := b.service(newService("web"))
	if err != nil || web.Spec.ClusterIP == "" || web.Spec.ClusterIPs[0] != web.Spec.ClusterIP || web.Spec.IPFamilies[0] != corev1.IPv4Protocol {
		t.Fatalf("%+v %v", web, err)
	}
	_, err = b.service(newService("twin", at(web.Spec.ClusterIP)))
	refused(t, "a taken address", err, "failed to allocate IP "+web.Spec.ClusterIP+": provided IP is already allocated")
	_, err = b.service(newService("far", at("10.1.0.1")))
	refused(t, "another range", err, "failed to allocate IP 10.1.0.1: the provided network does not match the current range")
	_, err = b.service(newService("far", at("10.1.0.1")), metav1.DryRunAll)
	refused(t, "another range, asked only", err, "the provided IP (10.1.0.1) is not in the valid range. The range of valid IPs is 10.0.0.0/28")
	_, err = b.service(newService("web"))
	refused(t, "a taken name", err, "already exists")
	if _, err := b.service(newService("dry"), metav1.DryRunAll); err != nil {
		t.Error(err)
	}
	for _, headless := range []*corev1.Service{newService("none", at("None")), newService("elsewhere", func(s *corev1.Service) {
		s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"}
	})} {
		if _, err := b.service(headless); err != nil {
			t.Error(err)
		}
	}
	if n := b.held(); n != 1 {
		t.Errorf("%d addresses are held for one service", n)
	}
	other := "10.0.0.9"
	if web.Spec.ClusterIP == other {
		other = "10.0.0.10"
	}
	_, err = b.change("web", func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = other, []string{other} })
	refused(t, "another address", err, "may not change once set")
	if _, err := b.change("web", func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.org"
	}); err != nil || b.held() != 0 {
		t.Errorf("a service without address: %v, %d held", err, b.held())
	}
	back, err := b.change("web", func(s *corev1.Service) { s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeClusterIP, "" })
	if err != nil || back.Spec.ClusterIP == "" || b.held() != 1 {
		t.Errorf("with an address again: %+v %v", back, err)
	}
	if _, _, err := b.Services.Delete(t.Context(), "default", "web", registry.Admission{}, nil); err != nil || b.held() != 0 {
		t.Errorf("deleted: %v, %d held", err, b.held())
	}
}

// TestTwoFamilies: a service gets an address of each of its families, and gives
// the second one back when it becomes single-stack.
func TestTwoFamilies(t *testing.T) {
	b := start(t, "10.0.0.0/28", "fd00::/112")
	policy := func(p corev1.IPFamilyPolicy) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.IPFamilyPolicy = &p }
	}
	expect := func(what string, s *corev1.Service, err error, families ...corev1.IPFamily) {
		t.Helper()
		if err != nil || !slices.Equal(s.Spec.IPFamilies, families) || len(s.Spec.ClusterIPs) != len(families) || s.Spec.ClusterIP != s.Spec.ClusterIPs[0] ||
			b.held() != len(families) {
			t.Fatalf("%s: %+v %v, %d held", what, s, err, b.held())
		}
		for i, ip := range s.Spec.ClusterIPs {
			held, err := registry.GetStored[*networkingv1.IPAddress](t.Context(), b.IPAddresses, "", ip)
			if err != nil || held.Labels["ipaddress.kubernetes.io/ip-family"] != string(families[i]) {
				t.Errorf("%s: %s is held as %+v %v", what, ip, held, err)
			}
		}
	}
	const v4, v6 = corev1.IPv4Protocol, corev1.IPv6Protocol
	s, err := b.service(newService("web", policy(corev1.IPFamilyPolicyPreferDualStack)))
	expect("both", s, err, v4, v6)
	s, err = b.change("web", policy(corev1.IPFamilyPolicySingleStack))
	expect("one again", s, err, v4)
	first := s.Spec.ClusterIP
	s, err = b.change("web", policy(corev1.IPFamilyPolicyRequireDualStack))
	expect("a second one", s, err, v4, v6)
	if s.Spec.ClusterIP != first {
		t.Errorf("the first address was %s and is %s", first, s.Spec.ClusterIP)
	}
	_, err = b.service(newService("six", func(s *corev1.Service) { s.Spec.IPFamilies, s.Spec.ClusterIP = []corev1.IPFamily{v6}, "fd00:1::1" }))
	refused(t, "another range", err, "failed to allocate IP fd00:1::1: the provided network does not match the current range")
	if _, _, err := b.Services.Delete(t.Context(), "default", "web", registry.Admission{}, nil); err != nil || b.held() != 0 {
		t.Errorf("deleted: %v, %d held", err, b.held())
	}
	s, err = b.service(newService("six", func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{v6} }))
	expect("the other one", s, err, v6)
}

// TestServiceAddressesAreGivenOnce: as many concurrent writers as there are
// addresses get one each.
func TestServiceAddressesAreGivenOnce(t *testing.T) {
	b := start(t)
	const all = 14 // of a /28
	var wait sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	var errs []error
	for i := range all {
		wait.Go(func() {
			e, err := b.Services.Create(t.Context(), newService("s"+string(rune('a'+i))), registry.Admission{}, &metav1.CreateOptions{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			if obj, err := b.Services.Decode(e); err == nil {
				seen[obj.(*corev1.Service).Spec.ClusterIP] = true
			}
		})
	}
	wait.Wait()
	if len(seen) != all || len(errs) > 0 {
		t.Errorf("%d addresses for %d services: %v", len(seen), all, errors.Join(errs...))
	}
	_, err := b.service(newService("late"))
	refused(t, "none left", err, `failed to allocate a serviceIP for Service "late": range is full`)
	if !apierrors.IsInternalError(err) {
		t.Errorf("with no address left, the reason is %v", apierrors.ReasonForError(err))
	}
	if _, err := b.Services.DeleteCollection(t.Context(), "default", registry.Admission{}, nil, registry.ListOptions{}); err != nil || b.held() != 0 {
		t.Errorf("all deleted: %v, %d held", err, b.held())
	}
}

func TestNodePorts(t *testing.T) {
	b := start(t)
	on := func(port int32) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.Ports[0].NodePort = port }
	}
	first, err := b.service(newService("first", typed(corev1.ServiceTypeNodePort)))
	if err != nil || first.Spec.Ports[0].NodePort < 30000 || first.Spec.Ports[0].NodePort > 30003 {
		t.Fatalf("%+v %v", first, err)
	}
	port := first.Spec.Ports[0].NodePort
	_, err = b.service(newService("second", typed(corev1.ServiceTypeNodePort), on(port)))
	refused(t, "a taken port", err, "provided port is already allocated")
	if n := b.held(); n != 1 {
		t.Errorf("%d addresses are held: what was taken for a service that is refused stays", n)
	}
	_, err = b.service(newService("far", typed(corev1.ServiceTypeNodePort), on(80)))
	refused(t, "another range", err, "provided port is not in the valid range. The range of valid ports is 30000-30003")
	_, err = b.service(newService("inside", on(30001)))
	refused(t, "inside only", err, "may not be used when `type` is 'ClusterIP'")
	kept, err := b.change("first", func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 0 })
	if err != nil || kept.Spec.Ports[0].NodePort != port {
		t.Errorf("an update that says nothing lost the port: %+v %v", kept, err)
	}
	if _, err := b.change("first", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP }); err != nil {
		t.Fatal(err)
	}
	if again, err := b.service(newService("second", typed(corev1.ServiceTypeNodePort), on(port))); err != nil || again.Spec.Ports[0].NodePort != port {
		t.Errorf("the port that was given back: %+v %v", again, err)
	}
}

// TestHealthCheckPorts: a load balancer with externalTrafficPolicy Local gets a
// health check port that no other service has at the same time.
func TestHealthCheckPorts(t *testing.T) {
	b := start(t)
	local := func(s *corev1.Service) {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		s.Spec.AllocateLoadBalancerNodePorts = new(false)
	}
	on := func(port int32) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.HealthCheckNodePort = port }
	}
	first, err := b.service(newService("first", typed(corev1.ServiceTypeLoadBalancer), local))
	if err != nil || first.Spec.HealthCheckNodePort < 30000 || first.Spec.HealthCheckNodePort > 30003 {
		t.Fatalf("%+v %v", first, err)
	}
	port := first.Spec.HealthCheckNodePort
	_, err = b.service(newService("second", typed(corev1.ServiceTypeLoadBalancer), local, on(port)))
	refused(t, "a taken port", err, "spec.healthCheckNodePort: Invalid value")
	kept, err := b.change("first", on(0))
	if err != nil || kept.Spec.HealthCheckNodePort != port {
		t.Errorf("an update that says nothing lost the port: %+v %v", kept, err)
	}
	if _, err := b.change("first", func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster }); err != nil {
		t.Fatal(err)
	}
	if again, err := b.service(newService("second", typed(corev1.ServiceTypeLoadBalancer), local, on(port))); err != nil ||
		again.Spec.HealthCheckNodePort != port {
		t.Errorf("the port that was given back: %+v %v", again, err)
	}
}
