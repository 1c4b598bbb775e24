package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/resources/networking"
	"kctl/proto/core"
)

// What the loops write belongs to the managers that have it in a cluster with
// kube-controller-manager v1.37.2.
func TestFieldManagersOfLoops(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Namespace("shop")
	c.Must(c.Root().Resource(budgets, "shop").Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
	}, nil))
	c.Must(c.Root().Resource(resourceQuotas, "shop").Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"configmaps": resource.MustParse("9")}},
	}, nil))
	roles := c.Root().Resource(core.ClusterRoles, "")
	c.Must(roles.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: map[string]string{"for": "all"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
	}, nil))
	c.Must(roles.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta:      metav1.ObjectMeta{Name: "all"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"for": "all"}}}},
	}, nil))
	c.Namespace("ending")
	c.Must(c.Root().Resource(core.ConfigMaps, "ending").Create(t.Context(),
		&core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stays", Finalizers: []string{"example.com/x"}}}, nil))
	c.Must(c.Root().Resource(core.Namespaces, "").Delete(t.Context(), "ending", nil, nil))

	for _, want := range []struct {
		resource        core.Resource
		namespace, name string
		managers        string
	}{
		{core.ConfigMaps, "shop", core.RootCAConfigMap, `kube-controller-manager Update "" f:data f:metadata`},
		{core.ServiceAccounts, "shop", "default", ``},
		{budgets, "shop", "web", `kctl Update "" f:spec, kube-controller-manager Update "status" f:status`},
		{resourceQuotas, "shop", "few", `kctl Update "" f:spec, kube-controller-manager Update "status" f:status`},
		{core.ClusterRoles, "", "all", `clusterrole-aggregation-controller Apply "" f:rules, kctl Update "" f:aggregationRule`},
		{core.Namespaces, "", "ending", `kctl Update "" f:metadata, kube-controller-manager Update "status" f:status`},
		{networking.ServiceCIDRResource, "", networking.DefaultServiceCIDRName,
			`kube-apiserver Update "" f:spec, kube-controller-manager Update "" f:metadata, kubernetes-service-cidr-controller Apply "status" f:status, service-cidr-controller Apply "status" f:status`},
		{core.Resource{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Name: "flowschemas", Kind: "FlowSchema"}, "", "catch-all",
			`api-priority-and-fairness-config-consumer-v1 Apply "status" f:status, api-priority-and-fairness-config-producer-v1 Update "" f:metadata f:spec`},
	} {
		t.Run(want.resource.Name+"/"+want.name, func(t *testing.T) {
			c := c.In(t)
			var got string
			defer func() {
				if t.Failed() {
					t.Logf("managers are\n%s, not\n%s", got, want.managers)
				}
			}()
			c.Until("the managers of "+want.name, func(ctx context.Context) bool {
				var obj metav1.PartialObjectMetadata
				if c.Root().Resource(want.resource, want.namespace).Get(ctx, want.name, &obj) != nil {
					return false
				}
				got = managersOf(&obj)
				return got == want.managers
			})
		})
	}
}

// managersOf describes managedFields, whose order depends on times.
func managersOf(obj metav1.Object) string {
	var out []string
	for _, e := range obj.GetManagedFields() {
		var fields map[string]any
		if err := json.Unmarshal(e.FieldsV1.Raw, &fields); err != nil {
			return err.Error()
		}
		top := slices.Sorted(maps.Keys(fields))
		out = append(out, fmt.Sprintf("%s %s %q %s", e.Manager, e.Operation, e.Subresource, strings.Join(top, " ")))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
