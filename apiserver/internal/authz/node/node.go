// Package node allows each kubelet what it needs for the pods that are bound to
// its node, and no more (Kubernetes docs, "Using Node Authorization"). A
// kubelet is a user system:node:NAME in the group system:nodes.
//
// The authorization chain calls it; what a kubelet may write into an object is
// for the admission plugin NodeRestriction.
package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/facts"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Pods knows the pods by name and by node.
type Pods interface {
	Get(namespace, name string) (facts.Pod, bool)
	ByIndex(node string) []facts.Pod
}

// Authorizer is the Node authorization mode.
type Authorizer struct{ Pods Pods }

// Of returns the node that a user is the kubelet of.
func Of(user *request.User) (name string, ok bool) {
	if user == nil || !slices.Contains(user.Groups, core.GroupNodes) {
		return "", false
	}
	name, ok = strings.CutPrefix(user.Username, core.UserNodePrefix)
	return name, ok && name != ""
}

// Authorize implements authz.Authorizer. It has no opinion on what it does not
// allow, so that RBAC can add to it.
func (a *Authorizer) Authorize(_ context.Context, at *authz.Attributes) (authz.Decision, string, error) {
	node, ok := Of(at.User)
	if !ok || !at.Resource {
		return authz.NoOpinion, "", nil
	}
	if reason := a.refuse(node, at); reason != "" {
		return authz.NoOpinion, reason, nil
	}
	return authz.Allow, "", nil
}

// RulesFor implements authz.RuleResolver: the rules depend on pods.
func (a *Authorizer) RulesFor(_ context.Context, user *request.User, _ string) ([]rbacv1.PolicyRule, error) {
	if _, ok := Of(user); !ok {
		return nil, nil
	}
	return nil, authz.NoRules("node")
}

// rule decides about one resource; it returns why not, or "".
type rule func(a *Authorizer, node string, at *authz.Attributes) string

type place struct{ group, resource, subresource string }

// rules by what is asked for. What is not here is not a kubelet's.
var rules = map[place]rule{
	{"", "pods", ""}:                                          (*Authorizer).pods,
	{"", "pods", "status"}:                                    both(verbs("get", "patch", "update"), (*Authorizer).ownPod),
	{"", "pods", "eviction"}:                                  both(verbs("create"), (*Authorizer).ownPod),
	{"", "nodes", ""}:                                         (*Authorizer).nodes,
	{"", "nodes", "status"}:                                   both(verbs("get", "patch", "update"), ownName("node")),
	{"", "secrets", ""}:                                       referenced("secret", func(p facts.Pod) []string { return p.Secrets }),
	{"", "configmaps", ""}:                                    referenced("configmap", func(p facts.Pod) []string { return p.ConfigMaps }),
	{"", "persistentvolumeclaims", ""}:                        referenced("persistentvolumeclaim", func(p facts.Pod) []string { return p.Claims }),
	{"", "serviceaccounts", ""}:                               both(verbs("get"), (*Authorizer).serviceAccount),
	{"", "serviceaccounts", "token"}:                          both(verbs("create"), (*Authorizer).serviceAccount),
	{"", "events", ""}:                                        verbs("create", "patch", "update"),
	{"events.k8s.io", "events", ""}:                           verbs("create", "patch", "update"),
	{"", "services", ""}:                                      verbs("get", "list", "watch"),
	{"coordination.k8s.io", "leases", ""}:                     (*Authorizer).leases,
	{"authentication.k8s.io", "tokenreviews", ""}:             verbs("create"),
	{"authorization.k8s.io", "subjectaccessreviews", ""}:      verbs("create"),
	{"node.k8s.io", "runtimeclasses", ""}:                     verbs("get", "list", "watch"),
	{"storage.k8s.io", "csidrivers", ""}:                      verbs("get", "list", "watch"),
	{"storage.k8s.io", "csinodes", ""}:                        both(verbs("create", "delete", "get", "patch", "update"), ownName("CSINode")),
	{"certificates.k8s.io", "certificatesigningrequests", ""}: verbs("create", "get", "list", "watch"),
}

func (a *Authorizer) refuse(node string, at *authz.Attributes) string {
	rule, ok := rules[place{at.APIGroup, at.ResourceName, at.Subresource}]
	if !ok {
		return fmt.Sprintf("node %q: not something that kubelets do", node)
	}
	return rule(a, node, at)
}

func verbs(allowed ...string) rule {
	return func(_ *Authorizer, node string, at *authz.Attributes) string {
		if slices.Contains(allowed, at.Verb) {
			return ""
		}
		return fmt.Sprintf("node %q: kubelets may only %s these", node, strings.Join(allowed, ", "))
	}
}

func both(first, second rule) rule {
	return func(a *Authorizer, node string, at *authz.Attributes) string {
		if reason := first(a, node, at); reason != "" {
			return reason
		}
		return second(a, node, at)
	}
}

// ownName: the object is called like the node.
func ownName(kind string) rule {
	return func(_ *Authorizer, node string, at *authz.Attributes) string {
		if at.Name == node || at.Name == "" && at.Verb == "create" {
			return ""
		}
		return fmt.Sprintf("node %q: kubelets may only reach the %s of their own", node, kind)
	}
}

// pods: a kubelet lists and watches those of its node, and reads them by name.
// A list by name is not one of its own: in all namespaces, or of a name yet to
// come, it would hold pods of other nodes.
// It creates and deletes mirror pods, and deletes pods that have ended.
func (a *Authorizer) pods(node string, at *authz.Attributes) string {
	switch at.Verb {
	case "create":
		return ""
	case "get", "delete":
		return a.ownPod(node, at)
	case "list", "watch":
		if at.Fields != nil {
			if value, ok := at.Fields.RequiresExactMatch("spec.nodeName"); ok && value == node {
				return ""
			}
		}
		return fmt.Sprintf("node %q: kubelets may only list and watch pods with the field selector spec.nodeName=%s", node, node)
	}
	return fmt.Sprintf("node %q: kubelets do not %s pods", node, at.Verb)
}

// ownPod: the pod is bound to the node. One that is not there is nobody's
// secret: a kubelet that looks for a pod it lost has to learn that it is gone.
func (a *Authorizer) ownPod(node string, at *authz.Attributes) string {
	pod, ok := a.Pods.Get(at.Namespace, at.Name)
	if !ok || pod.Node == node {
		return ""
	}
	return fmt.Sprintf("node %q: pod %s/%s is not bound to it", node, at.Namespace, at.Name)
}

func (a *Authorizer) nodes(node string, at *authz.Attributes) string {
	switch at.Verb {
	case "create":
		return ""
	case "list", "watch", "get", "patch", "update":
		return ownName("node")(a, node, at)
	}
	return fmt.Sprintf("node %q: kubelets do not %s nodes", node, at.Verb)
}

func (a *Authorizer) leases(node string, at *authz.Attributes) string {
	if at.Namespace != core.NamespaceNodeLease {
		return fmt.Sprintf("node %q: kubelets may only reach leases in the namespace %q", node, core.NamespaceNodeLease)
	}
	return both(verbs("create", "delete", "get", "patch", "update"), ownName("lease"))(a, node, at)
}

// referenced: a pod of the node names the object. A list or watch is for one
// object, by a field selector on its name.
func referenced(kind string, names func(facts.Pod) []string) rule {
	return both(verbs("get", "list", "watch"), func(a *Authorizer, node string, at *authz.Attributes) string {
		if at.Name == "" {
			return fmt.Sprintf("node %q: kubelets may only reach one %s by its name", node, kind)
		}
		for _, pod := range a.Pods.ByIndex(node) {
			if pod.Namespace == at.Namespace && slices.Contains(names(pod), at.Name) {
				return ""
			}
		}
		return fmt.Sprintf("no relationship found between node %q and this %s", node, kind)
	})
}

func (a *Authorizer) serviceAccount(node string, at *authz.Attributes) string {
	for _, pod := range a.Pods.ByIndex(node) {
		if pod.Namespace == at.Namespace && pod.ServiceAccount == at.Name {
			return ""
		}
	}
	return fmt.Sprintf("no relationship found between node %q and this service account", node)
}
