package controllers

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/resources/networking"
	"kctl/proto/core"
)

func inRange(r string) func(o *config.Options) {
	return func(o *config.Options) { o.ServiceClusterIPRange = r }
}

func (c *cluster) addRange(name string, cidrs ...string) {
	c.T.Helper()
	c.Must(c.Root().Resource(networking.ServiceCIDRResource, "").Create(c.T.Context(), &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs},
	}, nil))
}

// service creates a service and returns its address.
func (c *cluster) service(name string) (string, error) {
	var s corev1.Service
	err := c.Root().Resource(core.Services, "default").Create(c.T.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, &s)
	return s.Spec.ClusterIP, err
}

// TestMovingToAnotherRange changes --service-cluster-ip-range as Kubernetes'
// docs describe ("Reconfigure default Service IP ranges").
func TestMovingToAnotherRange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := startIn(t, dir, inRange("10.0.0.0/24"))
	web, err := c.service("web")
	c.Must(err)
	c.Must(c.Stop())
	c = startIn(t, dir, inRange("10.1.0.0/24"))
	ranges, services := c.Root().Resource(networking.ServiceCIDRResource, ""), c.Root().Resource(core.Services, "default")
	is := func(what, cidr string, ready metav1.ConditionStatus) {
		t.Helper()
		c.Until(what, func(ctx context.Context) bool {
			var r networkingv1.ServiceCIDR
			return ranges.Get(ctx, networking.DefaultServiceCIDRName, &r) == nil && r.Spec.CIDRs[0] == cidr && len(r.Finalizers) > 0 &&
				meta.IsStatusConditionPresentAndEqual(r.Status.Conditions, networkingv1.ServiceCIDRConditionReady, ready)
		})
	}
	is("the range stays as it was", "10.0.0.0/24", metav1.ConditionTrue)
	c.Until("the event about the flags", func(ctx context.Context) bool {
		var all corev1.EventList
		return c.Root().Resource(core.Events, "default").List(ctx, &all) == nil && slices.ContainsFunc(all.Items, func(e corev1.Event) bool {
			return e.Reason == "KubernetesDefaultServiceCIDRInconsistent" && e.InvolvedObject.Name == networking.DefaultServiceCIDRName
		})
	})
	c.addRange("new", "10.1.0.0/24")
	c.Must(ranges.Delete(t.Context(), networking.DefaultServiceCIDRName, nil, nil))
	is("services have addresses of it", "10.0.0.0/24", metav1.ConditionFalse)
	if ip, err := c.service("late"); err != nil || ip[:5] != "10.1." {
		t.Fatalf("a new service has %q: %v", ip, err)
	}
	c.Must(services.Delete(t.Context(), "web", nil, nil))
	c.Until("its address has gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(c.Root().Resource(core.IPAddresses, "").Get(ctx, web, &networkingv1.IPAddress{}))
	})
	c.Must(services.Delete(t.Context(), "kubernetes", nil, nil))
	c.Until("service kubernetes is there again", func(ctx context.Context) bool {
		var s corev1.Service
		return services.Get(ctx, "kubernetes", &s) == nil && s.Spec.ClusterIP == "10.1.0.1"
	})
	is("the range is that of the flags", "10.1.0.0/24", metav1.ConditionTrue)

	// An address that somebody deletes is created again.
	c.Must(c.Root().Resource(core.IPAddresses, "").Delete(t.Context(), "10.1.0.1", nil, nil))
	c.Until("the address is kept", func(ctx context.Context) bool {
		return c.Root().Resource(core.IPAddresses, "").Get(ctx, "10.1.0.1", &networkingv1.IPAddress{}) == nil
	})
}
