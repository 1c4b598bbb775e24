package bootstrap

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// getNodes is the role that lets a joining machine see whether its name is
// taken.
const getNodes = "kubeadm:get-nodes"

// bindings are those that kubeadm gives to joining machines, under its names:
// they may request a client certificate, which is approved automatically, renew
// it, and see whether their name is taken.
var bindings = []struct{ name, role, group string }{
	{"kubeadm:kubelet-bootstrap", "system:node-bootstrapper", DefaultGroup},
	{"kubeadm:node-autoapprove-bootstrap", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", DefaultGroup},
	{"kubeadm:node-autoapprove-certificate-rotation", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", core.GroupNodes},
	{getNodes, getNodes, DefaultGroup},
}

// nodeNetwork is the role of kubelets with --node-network: they read all nodes, to
// know where their pods are, but the Node authorizer lets them read only their
// own. deploy/network/node-network.yaml is the same.
const nodeNetwork = "kctl:node-network"

// ValidateNodeNetwork checks a value of the kubelet's --node-network; "" means
// none.
func ValidateNodeNetwork(mode string) error {
	if mode != "" && mode != "routes" && mode != "vxlan" {
		return fmt.Errorf("--node-network=%s: want routes (all nodes are on one link) or vxlan", mode)
	}
	return nil
}

// GrantNodeNetwork gives nodes the rights that --node-network needs.
func GrantNodeNetwork(ctx context.Context, client *rest.Client) error {
	if err := createIfAbsent(ctx, client, core.ClusterRoles, roleOnNodes(nodeNetwork, "list", "watch")); err != nil {
		return err
	}
	return createIfAbsent(ctx, client, core.ClusterRoleBindings, bindingTo(nodeNetwork, nodeNetwork, core.GroupNodes))
}

// GrantJoining gives the default group of tokens the rights that joining needs.
// Existing objects of these names are left as they are.
func GrantJoining(ctx context.Context, client *rest.Client) error {
	if err := createIfAbsent(ctx, client, core.ClusterRoles, roleOnNodes(getNodes, "get")); err != nil {
		return err
	}
	for _, b := range bindings {
		if err := createIfAbsent(ctx, client, core.ClusterRoleBindings, bindingTo(b.name, b.role, b.group)); err != nil {
			return err
		}
	}
	return nil
}

func roleOnNodes(name string, verbs ...string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{""}, Resources: []string{"nodes"}}},
	}
}

func bindingTo(name, role, group string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: group}},
	}
}

func createIfAbsent(ctx context.Context, client *rest.Client, resource core.Resource, obj core.Object) error {
	err := client.Resource(resource, "").Create(ctx, obj, nil)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("rights of nodes that join: %w", err)
	}
	return nil
}
