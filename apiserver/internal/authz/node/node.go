package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Pods knows the pods by name and by node.
type Pods interface {
	Get(namespace, name string) (informer.Pod, bool)
	ByIndex(node string) []informer.Pod
}

// Authorizer is the Node authorization mode.
type Authorizer struct {
	Pods   Pods
	Stored Stored
	// CatchUp waits until Pods has all pods that kubelets may have seen by now;
	// nil if it always has.
	CatchUp func(ctx context.Context)
}

// kubeletOf returns the node whose kubelet a user is.
func kubeletOf(user *request.User) (name string, ok bool) {
	if user == nil || !slices.Contains(user.Groups, core.GroupNodes) {
		return "", false
	}
	name, ok = strings.CutPrefix(user.Username, core.UserNodePrefix)
	return name, ok && name != ""
}

// Authorize implements authz.Authorizer. It has no opinion on what it does not
// allow, so that RBAC can add to it.
func (a *Authorizer) Authorize(ctx context.Context, at *authz.Attributes) (authz.Decision, string, error) {
	node, ok := kubeletOf(at.User)
	if !ok || !at.Resource {
		return authz.NoOpinion, "", nil
	}
	reason := a.refusalReason(ctx, node, at)
	if reason != "" && a.CatchUp != nil {
		a.CatchUp(ctx)
		reason = a.refusalReason(ctx, node, at)
	}
	if reason != "" {
		return authz.NoOpinion, reason, nil
	}
	return authz.Allow, "", nil
}

// RulesFor implements authz.RuleResolver: the rules depend on pods.
func (a *Authorizer) RulesFor(_ context.Context, user *request.User, _ string) ([]rbacv1.PolicyRule, error) {
	if _, ok := kubeletOf(user); !ok {
		return nil, nil
	}
	return nil, authz.NoRules("node")
}

// rule decides about one resource; it returns why not, or "".
type rule func(ctx context.Context, a *Authorizer, node string, at *authz.Attributes) string

type resourceKey struct{ group, resource, subresource string }

// rules by resource. Resources that are not here are not for kubelets.
var rules = map[resourceKey]rule{
	{"", "pods", ""}:                                          podRule,
	{"", "pods", "status"}:                                    allOf(allowVerbs("patch", "update"), boundPod),
	{"", "pods", "eviction"}:                                  allOf(allowVerbs("create"), boundPod),
	{"", "nodes", ""}:                                         nodeRule,
	{"", "nodes", "status"}:                                   allOf(allowVerbs("patch", "update"), ownNode),
	{"", "secrets", ""}:                                       allOf(readByName, referencedSecret),
	{"", "configmaps", ""}:                                    allOf(readByName, podReferences(configMapsOf)),
	{"", "persistentvolumeclaims", ""}:                        allOf(onlyGet, podReferences(claimsOf)),
	{"", "persistentvolumeclaims", "status"}:                  allOf(allowVerbs("update", "patch"), podReferences(claimsOf)),
	{"", "persistentvolumes", ""}:                             allOf(onlyGet, boundVolume),
	{"", "serviceaccounts", ""}:                               allOf(onlyGet, serviceAccountRule),
	{"", "serviceaccounts", "token"}:                          allOf(allowVerbs("create"), serviceAccountRule),
	{"", "events", ""}:                                        allowVerbs("create", "patch", "update"),
	{"events.k8s.io", "events", ""}:                           allowVerbs("create", "patch", "update"),
	{"", "services", ""}:                                      allowVerbs("get", "list", "watch"),
	{"", "endpoints", ""}:                                     allowVerbs("get"),
	{"coordination.k8s.io", "leases", ""}:                     leaseRule,
	{"authentication.k8s.io", "tokenreviews", ""}:             allowVerbs("create"),
	{"authorization.k8s.io", "subjectaccessreviews", ""}:      allowVerbs("create"),
	{"authorization.k8s.io", "localsubjectaccessreviews", ""}: allowVerbs("create"),
	{"node.k8s.io", "runtimeclasses", ""}:                     allowVerbs("get", "list", "watch"),
	{"storage.k8s.io", "csidrivers", ""}:                      allowVerbs("get", "list", "watch"),
	{"storage.k8s.io", "csinodes", ""}:                        ownObject("CSINode"),
	{"storage.k8s.io", "volumeattachments", ""}:               allOf(onlyGet, objectNamesNode(attachmentResource, nodeOfAttachment)),
	{"resource.k8s.io", "resourceclaims", ""}:                 allOf(allowVerbs("get"), podReferences(resourceClaimsOf)),
	{"resource.k8s.io", "resourceslices", ""}: ofNode([]string{"get", "update", "patch", "delete"},
		objectNamesNode(sliceResource, nodeOfSlice), "nodeName", "list", "watch", "deletecollection"),
	{"certificates.k8s.io", "certificatesigningrequests", ""}: allowVerbs("create", "get", "list", "watch"),
	{"certificates.k8s.io", "clustertrustbundles", ""}:        allowVerbs("get", "list", "watch"),
	{"certificates.k8s.io", "podcertificaterequests", ""}: ofNode([]string{"get"},
		objectNamesNode(podRequestResource, nodeOfRequest), "nodeName", "list", "watch"),
}

func (a *Authorizer) refusalReason(ctx context.Context, node string, at *authz.Attributes) string {
	rule, ok := rules[resourceKey{at.APIGroup, at.ResourceName, at.Subresource}]
	if !ok {
		return fmt.Sprintf("node %q: not something that kubelets do", node)
	}
	return rule(ctx, a, node, at)
}

func allowVerbs(allowed ...string) rule {
	return func(_ context.Context, _ *Authorizer, node string, at *authz.Attributes) string {
		if slices.Contains(allowed, at.Verb) {
			return ""
		}
		return fmt.Sprintf("node %q: kubelets may only %s these", node, strings.Join(allowed, ", "))
	}
}

// onlyGet: objects are read one at a time.
func onlyGet(_ context.Context, _ *Authorizer, _ string, at *authz.Attributes) string {
	if at.Verb == "get" {
		return ""
	}
	return "can only get individual resources of this type"
}

// readByName: an object is read or watched by its name.
func readByName(_ context.Context, _ *Authorizer, _ string, at *authz.Attributes) string {
	switch {
	case at.Verb != "get" && at.Verb != "list" && at.Verb != "watch":
		return "can only read resources of this type"
	case at.Namespace == "":
		return "can only read namespaced object of this type"
	case at.Name == "":
		return "No Object name found"
	}
	return ""
}

func allOf(first, second rule) rule {
	return func(ctx context.Context, a *Authorizer, node string, at *authz.Attributes) string {
		if reason := first(ctx, a, node, at); reason != "" {
			return reason
		}
		return second(ctx, a, node, at)
	}
}

// ownNode: the kubelet's own Node.
func ownNode(_ context.Context, _ *Authorizer, node string, at *authz.Attributes) string {
	if at.Name == node {
		return ""
	}
	return fmt.Sprintf("node %q: kubelets may only reach the node of their own", node)
}

// ownObject: a kubelet maintains the object with its node's name.
func ownObject(kind string) rule {
	return func(_ context.Context, _ *Authorizer, node string, at *authz.Attributes) string {
		switch at.Verb {
		case "create":
			return ""
		case "get", "update", "patch", "delete":
			if at.Name == node {
				return ""
			}
			return fmt.Sprintf("can only access %s with the same name as the requesting node", kind)
		}
		return "can only get, create, update, patch, or delete a " + kind
	}
}

// ofNode: a kubelet creates these objects, reaches one by name if the rule says
// so, and several if it selects those of its node by a field, which refusals
// name.
func ofNode(one []string, rule rule, field string, many ...string) rule {
	return func(ctx context.Context, a *Authorizer, node string, at *authz.Attributes) string {
		switch {
		case at.Verb == "create":
			return ""
		case slices.Contains(one, at.Verb):
			return rule(ctx, a, node, at)
		case slices.Contains(many, at.Verb):
			if selectsNode(node, at) {
				return ""
			}
			return fmt.Sprintf("can only %s %s with %s field selector", strings.Join(many, "/"), at.ResourceName, field)
		}
		return fmt.Sprintf("node %q: kubelets do not %s %s", node, at.Verb, at.ResourceName)
	}
}

// selectsNode: the request selects the node's objects. A list by name does not: in
// all namespaces, or for a name yet to come, it could include other nodes'
// objects.
func selectsNode(node string, at *authz.Attributes) bool {
	if at.Fields == nil {
		return false
	}
	value, ok := at.Fields.RequiresExactMatch("spec.nodeName")
	return ok && value == node
}

// podRule: a kubelet lists and watches the pods of its node, and reads them by
// name. It creates and deletes mirror pods, and deletes pods that have
// terminated.
var podRule = ofNode([]string{"get", "delete"}, boundPod, "spec.nodeName", "list", "watch")

// boundPod: the pod is bound to the node. One that is not known may be another
// node's, just created, and is not shown; what changes a pod is let through, so
// that a kubelet learns that the pod is gone, and admission (NodeRestriction) looks
// at the stored one.
func boundPod(_ context.Context, a *Authorizer, node string, at *authz.Attributes) string {
	pod, ok := a.Pods.Get(at.Namespace, at.Name)
	if ok && pod.Node == node || !ok && at.Verb != "get" {
		return ""
	}
	return unrelatedReason(node)
}

func nodeRule(ctx context.Context, a *Authorizer, node string, at *authz.Attributes) string {
	switch at.Verb {
	case "create":
		return ""
	case "list", "watch", "get":
		switch at.Name {
		case node:
			return ""
		case "":
			return fmt.Sprintf("node '%s' cannot read all nodes, only its own Node object", node)
		}
		return fmt.Sprintf("node '%s' cannot read '%s', only its own Node object", node, at.Name)
	case "patch", "update":
		return ownNode(ctx, a, node, at)
	}
	return fmt.Sprintf("node %q: kubelets do not %s nodes", node, at.Verb)
}

func leaseRule(ctx context.Context, a *Authorizer, node string, at *authz.Attributes) string {
	if at.Namespace != core.NamespaceNodeLease {
		return fmt.Sprintf("can only access leases in the %q system namespace", core.NamespaceNodeLease)
	}
	return ownObject("node lease")(ctx, a, node, at)
}

// podReferences: a pod of the node names the object. A list or watch is for one
// object, by a field selector on its name.
func podReferences(names func(informer.Pod) []string) rule {
	return func(_ context.Context, a *Authorizer, node string, at *authz.Attributes) string {
		if at.Name != "" && a.anyPodNames(node, at.Namespace, at.Name, names) {
			return ""
		}
		return unrelatedReason(node)
	}
}

// anyPodNames reports whether a pod of the node names an object of its namespace.
func (a *Authorizer) anyPodNames(node, namespace, name string, names func(informer.Pod) []string) bool {
	return slices.ContainsFunc(a.Pods.ByIndex(node), func(pod informer.Pod) bool {
		return pod.Namespace == namespace && slices.Contains(names(pod), name)
	})
}

var serviceAccountRule = podReferences(func(p informer.Pod) []string { return []string{p.ServiceAccount} })

func unrelatedReason(node string) string {
	return fmt.Sprintf("no relationship found between node '%s' and this object", node)
}
