package controllers

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
)

func TestNamespacesAreFurnished(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Namespace("shop")
	for _, namespace := range []string{"default", "kube-system", "kube-public", "kube-node-lease", "shop"} {
		c.AwaitServiceAccount(namespace)
		c.Until("root certificate of "+namespace, func(ctx context.Context) bool {
			return c.Root().Resource(core.ConfigMaps, namespace).Get(ctx, core.RootCAConfigMap, &core.ConfigMap{}) == nil
		})
	}
	// What is deleted or changed is restored.
	maps := c.Root().Resource(core.ConfigMaps, "shop")
	var published core.ConfigMap
	c.Must(maps.Get(t.Context(), core.RootCAConfigMap, &published))
	spoilt := published.DeepCopy()
	spoilt.Data = map[string]string{"ca.crt": "nonsense"}
	c.Must(maps.Update(t.Context(), core.RootCAConfigMap, spoilt, nil))
	c.Must(c.Root().Resource(core.ServiceAccounts, "shop").Delete(t.Context(), "default", nil, nil))
	c.AwaitServiceAccount("shop")
	c.Until("the right certificate", func(ctx context.Context) bool {
		var again core.ConfigMap
		return maps.Get(ctx, core.RootCAConfigMap, &again) == nil && again.Data["ca.crt"] == published.Data["ca.crt"]
	})
}

func TestNamespaceEnds(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Namespace("shop")
	c.AwaitServiceAccount("shop")
	c.Created("shop", servertest.Pod("web"))
	running := c.Created("shop", func() *core.Pod { p := servertest.Pod("db"); p.Spec.NodeName = "n1"; return p }())
	c.Must(c.Root().Resource(core.Leases, "shop").Create(t.Context(), &core.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}, nil))
	namespaces := c.Root().Resource(core.Namespaces, "")
	c.Must(namespaces.Delete(t.Context(), "shop", nil, nil))
	var ending core.Namespace
	c.Must(namespaces.Get(t.Context(), "shop", &ending))
	if ending.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("phase is %s", ending.Status.Phase)
	}
	err := c.Root().Resource(core.ConfigMaps, "shop").Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, nil)
	if !apierrors.IsForbidden(err) {
		t.Errorf("created in an ending namespace: %v", err)
	}
	// A pod on a node stays until its kubelet removes it, and holds up the
	// namespace.
	pods := c.Root().Resource(core.Pods, "shop")
	c.Until("the running pod is asked to go", func(ctx context.Context) bool {
		var db core.Pod
		return pods.Get(ctx, running.Name, &db) == nil && db.DeletionTimestamp != nil
	})
	c.Until("the namespace tells what it waits for", func(ctx context.Context) bool {
		var waiting core.Namespace
		return namespaces.Get(ctx, "shop", &waiting) == nil && slices.ContainsFunc(waiting.Status.Conditions, func(c corev1.NamespaceCondition) bool {
			return c.Type == corev1.NamespaceContentRemaining && c.Status == corev1.ConditionTrue &&
				c.Message == "Some resources are remaining: pods. has 1 resource instances"
		})
	})
	c.Must(c.Root().Resource(core.Leases, "shop").Get(t.Context(), "l", &core.Lease{})) // pods are deleted first
	now := int64(0)
	c.Must(pods.Delete(t.Context(), running.Name, &metav1.DeleteOptions{GracePeriodSeconds: &now}, nil))
	c.Until("the namespace is gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(namespaces.Get(ctx, "shop", &core.Namespace{}))
	})
	var left corev1.ConfigMapList
	c.Must(c.Root().Resource(core.ConfigMaps, "shop").List(t.Context(), &left))
	if len(left.Items) > 0 {
		t.Errorf("%d config maps are left", len(left.Items))
	}
}

func TestDependentsGoWithTheirOwner(t *testing.T) {
	t.Parallel()
	c := start(t)
	maps := c.Root().Resource(core.ConfigMaps, "default")
	owner := &core.ConfigMap{}
	c.Must(maps.Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, owner))
	reference := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}
	for _, name := range []string{"child", "orphan"} {
		dependent := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{reference}}}
		if name == "orphan" { // its owner never existed
			dependent.OwnerReferences[0].UID, dependent.OwnerReferences[0].Name = "none", "none"
		}
		c.Must(maps.Create(t.Context(), dependent, nil))
	}
	gone := func(name string) {
		t.Helper()
		c.Until(name+" is gone", func(ctx context.Context) bool { return apierrors.IsNotFound(maps.Get(ctx, name, &core.ConfigMap{})) })
	}
	gone("orphan")
	c.Must(maps.Get(t.Context(), "child", &core.ConfigMap{}))
	c.Must(maps.Delete(t.Context(), "owner", nil, nil))
	gone("child")
}

func TestOrphanAndForeground(t *testing.T) {
	t.Parallel()
	c := start(t)
	maps := c.Root().Resource(core.ConfigMaps, "default")
	family := func(name string) {
		t.Helper()
		owner := &core.ConfigMap{}
		c.Must(maps.Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, owner))
		c.Must(maps.Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: name + "-child", OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: owner.UID, BlockOwnerDeletion: new(true),
			}},
		}}, nil))
	}
	remove := func(name string, policy metav1.DeletionPropagation) {
		t.Helper()
		c.Must(maps.Delete(t.Context(), name, &metav1.DeleteOptions{PropagationPolicy: &policy}, nil))
		c.Until(name+" is gone", func(ctx context.Context) bool { return apierrors.IsNotFound(maps.Get(ctx, name, &core.ConfigMap{})) })
	}
	family("kept")
	remove("kept", metav1.DeletePropagationOrphan)
	var child core.ConfigMap
	c.Must(maps.Get(t.Context(), "kept-child", &child))
	if len(child.OwnerReferences) > 0 {
		t.Errorf("the orphan still has %v", child.OwnerReferences)
	}
	family("last")
	remove("last", metav1.DeletePropagationForeground)
	if err := maps.Get(t.Context(), "last-child", &child); !apierrors.IsNotFound(err) {
		t.Errorf("the owner went before its dependent: %v", err)
	}
}

func TestNodeTaintsFollowConditions(t *testing.T) {
	t.Parallel()
	c := start(t)
	nodes := c.Root().Resource(core.Nodes, "")
	c.Must(nodes.Create(t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, nil))
	c.Must(nodes.Create(t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "well"}}, nil)) // otherwise no node would be given up
	says := func(name string, ready corev1.ConditionStatus) {
		t.Helper()
		now := metav1.Now()
		var node core.Node
		c.Must(nodes.Get(t.Context(), name, &node))
		node.ResourceVersion = ""
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: now, LastTransitionTime: now}}
		c.Must(c.Root().Do(t.Context(), "PUT", core.Nodes.Path("", name)+"/status", &node, nil))
	}
	says("well", corev1.ConditionTrue)
	report := func(ready corev1.ConditionStatus) { says("n1", ready) }
	tainted := func(what string, want ...corev1.Taint) {
		t.Helper()
		c.Until(what, func(ctx context.Context) bool {
			var node core.Node
			if nodes.Get(ctx, "n1", &node) != nil || len(node.Spec.Taints) != len(want) {
				return false
			}
			for _, taint := range want {
				if !slices.ContainsFunc(node.Spec.Taints, func(have corev1.Taint) bool { return have.MatchTaint(&taint) }) {
					return false
				}
			}
			return true
		})
	}
	notReady := corev1.TaintNodeNotReady
	tainted("a new node", corev1.Taint{Key: notReady, Effect: corev1.TaintEffectNoSchedule})
	report(corev1.ConditionTrue)
	tainted("a ready node")
	c.Namespace("shop")
	c.AwaitServiceAccount("shop")
	pod := servertest.Pod("web")
	pod.Spec.NodeName = "n1"
	created := c.Created("shop", pod)
	created.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	c.Must(c.Root().Do(t.Context(), "PUT", core.Pods.Path("shop", "web")+"/status", created, nil))
	report(corev1.ConditionFalse)
	tainted("a node that is not ready", corev1.Taint{Key: notReady, Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: notReady, Effect: corev1.TaintEffectNoExecute})
	report(corev1.ConditionTrue)
	tainted("a node that is ready again")
	// Its kubelet is there, and says itself whether its pods are ready.
	var after core.Pod
	c.Must(c.Root().Resource(core.Pods, "shop").Get(t.Context(), "web", &after))
	if i := slices.IndexFunc(after.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady }); i < 0 ||
		after.Status.Conditions[i].Status != corev1.ConditionTrue {
		t.Errorf("its pod was marked: %v", after.Status.Conditions)
	}
}

func TestPodsLeaveATaintedNode(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Namespace("shop")
	c.AwaitServiceAccount("shop")
	c.Must(c.Root().Resource(core.Nodes, "").Create(t.Context(), &core.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "fire", Effect: corev1.TaintEffectNoExecute}}},
	}, nil))
	brave := servertest.Pod("brave")
	brave.Spec.NodeName = "n1"
	brave.Spec.Tolerations = []corev1.Toleration{{Key: "fire", Operator: corev1.TolerationOpExists}}
	c.Created("shop", brave)
	timid := servertest.Pod("timid")
	timid.Spec.NodeName = "n1"
	c.Created("shop", timid)
	pods := c.Root().Resource(core.Pods, "shop")
	var leaving core.Pod
	c.Until("the timid pod is asked to go", func(ctx context.Context) bool {
		return pods.Get(ctx, "timid", &leaving) == nil && leaving.DeletionTimestamp != nil
	})
	if !slices.ContainsFunc(leaving.Status.Conditions, func(have corev1.PodCondition) bool { return have.Type == corev1.DisruptionTarget }) {
		t.Errorf("it is not told why: %+v", leaving.Status.Conditions)
	}
	var staying core.Pod
	c.Must(pods.Get(t.Context(), "brave", &staying))
	if staying.DeletionTimestamp != nil {
		t.Error("the brave pod is asked to go")
	}
}

func TestAggregatedRoles(t *testing.T) {
	t.Parallel()
	c := start(t)
	roles := c.Root().Resource(core.ClusterRoles, "")
	c.Must(roles.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"example.org"}, Resources: []string{"widgets"}}},
	}, nil))
	for _, name := range []string{"view", "edit", "admin"} {
		c.Until(name+" has the new rule", func(ctx context.Context) bool {
			var role rbacv1.ClusterRole
			return roles.Get(ctx, name, &role) == nil && slices.ContainsFunc(role.Rules,
				func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "widgets") })
		})
	}
}

func TestLoopsCanBeLeftOut(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *config.Options) { o.Controllers = []string{"*", "-serviceaccount-controller"} })
	c.Until("root certificate", func(ctx context.Context) bool {
		return c.Root().Resource(core.ConfigMaps, "default").Get(ctx, core.RootCAConfigMap, &core.ConfigMap{}) == nil
	})
	if err := c.Root().Resource(core.ServiceAccounts, "default").Get(t.Context(), "default", &core.ServiceAccount{}); !apierrors.IsNotFound(err) {
		t.Errorf("the loop that was left out has run: %v", err)
	}
}
