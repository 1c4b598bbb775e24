package core

import "testing"

func TestResourcePath(t *testing.T) {
	for _, tc := range []struct {
		resource        Resource
		namespace, name string
		want            string
	}{
		{Pods, "", "", "/api/v1/pods"},
		{Pods, "a", "", "/api/v1/namespaces/a/pods"},
		{Pods, "a", "b", "/api/v1/namespaces/a/pods/b"},
		{Nodes, "ignored", "n", "/api/v1/nodes/n"},
		{Leases, "a", "b", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b"},
	} {
		if got := tc.resource.Path(tc.namespace, tc.name); got != tc.want {
			t.Errorf("%s in %q: %s, want %s", tc.resource.Name, tc.namespace, got, tc.want)
		}
	}
}

func TestSchemeKnowsTheResources(t *testing.T) {
	for _, r := range []Resource{Namespaces, Nodes, Pods, Events, ConfigMaps, Secrets, Services, ServiceAccounts, Leases, PodTemplates, Endpoints, EndpointSlices,
		IPAddresses, RuntimeClasses, PriorityClasses, TokenReviews, AccessReviews} {
		if !Scheme.Recognizes(r.GVK()) {
			t.Errorf("the scheme does not know %s", r.GVK())
		}
	}
}

func TestPodOperationString(t *testing.T) {
	if got := RECONCILE.String(); got != "RECONCILE" {
		t.Errorf("got %q", got)
	}
	if got := PodOperation(17).String(); got != "PodOperation(17)" {
		t.Errorf("got %q", got)
	}
}
