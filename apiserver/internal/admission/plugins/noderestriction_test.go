package plugins

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

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
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: "node-uid", Controller: new(true)}}
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
		"its node": {on(admission.Create, core.Nodes, "", "n1", n("n1"), nil), ""},
		"another node": {on(admission.Create, core.Nodes, "", "n2", n("n2"), nil),
			`nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"`},
		"its labels": {on(admission.Update, core.Nodes, "", "n1", n("n1", label("node.kubernetes.io/x")), n("n1")), ""},
		"labels of its own at first": {on(admission.Create, core.Nodes, "", "n1", n("n1", label("node-restriction.kubernetes.io/x")), nil),
			`nodes "n1" is forbidden: node "n1" is not allowed to set the following labels: node-restriction.kubernetes.io/x`},
		"labels of the admin": {on(admission.Update, core.Nodes, "", "n1", n("n1", label("node-restriction.kubernetes.io/x")), n("n1")),
			`nodes "n1" is forbidden: is not allowed to modify labels: node-restriction.kubernetes.io/x`},
		"a role": {on(admission.Update, core.Nodes, "", "n1", n("n1", label("node-role.kubernetes.io/control-plane")), n("n1")),
			`nodes "n1" is forbidden: is not allowed to modify labels`},
		"taints": {on(admission.Update, core.Nodes, "", "n1", n("n1"), n("n1", func(n *core.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} })),
			`nodes "n1" is forbidden: node "n1" is not allowed to modify taints`},
		"mirror pod": {on(admission.Create, core.Pods, "", "web", mirror("n1"), nil), ""},
		"mirror pod elsewhere": {on(admission.Create, core.Pods, "", "web", mirror("n2"), nil),
			`pods "web" is forbidden: node "n1" can only create pods with spec.nodeName set to itself`},
		"mirror pod for a driver's secret": {on(admission.Create, core.Pods, "", "web", mirrorWith(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: "d", NodePublishSecretRef: &corev1.LocalObjectReference{Name: "key"}}}), nil),
			`pods "web" is forbidden: node "n1" can not create pods that reference secrets`},
		"mirror pod for a driver": {on(admission.Create, core.Pods, "", "web", mirrorWith(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}), nil),
			`pods "web" is forbidden: node "n1" can not create pods that reference csidrivers (via CSI volumes)`},
		"mirror pod for a secret": {on(admission.Create, core.Pods, "", "web", mirrorWith(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: "key"}}), nil), `pods "web" is forbidden: node "n1" can not create pods that reference secrets`},
		"mirror pod with a claim of its own": {
			on(admission.Create, core.Pods, "", "web", mirrorWith(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}), nil),
			`pods "web" is forbidden: node "n1" can not create pods that reference persistentvolumeclaims`},
		"a pod": {on(admission.Create, core.Pods, "", "web", onNode("n1"), nil),
			`pods "web" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation`},
		"status of its pod": {on(admission.Update, core.Pods, "status", "web", onNode("n1"), onNode("n1")), ""},
		"status of another's": {on(admission.Update, core.Pods, "status", "web", onNode("n1"), onNode("n2")),
			`pods "web" is forbidden: node "n1" can only update pod status for pods with spec.nodeName set to itself`},
		"spec of its pod": {on(admission.Update, core.Pods, "", "web", onNode("n1"), onNode("n1")),
			`pods "web" is forbidden: unexpected operation "UPDATE"`},
		"its pod's end": {on(admission.Delete, core.Pods, "", "mine", nil, onNode("n1")), ""},
		"another's end": {on(admission.Delete, core.Pods, "", "theirs", nil, onNode("n2")),
			`pods "theirs" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself`},
		"its lease": {on(admission.Create, core.Leases, "", "n1", lease("kube-node-lease", "n1"), nil), ""},
		"another's lease": {on(admission.Create, core.Leases, "", "n2", lease("kube-node-lease", "n2"), nil),
			`leases.coordination.k8s.io "n2" is forbidden: can only access node lease with the same name`},
		"a leader's lease": {on(admission.Update, core.Leases, "", "n1", lease("default", "n1"), lease("default", "n1")),
			`leases.coordination.k8s.io "n1" is forbidden: can only access leases in the "kube-node-lease" system namespace`},
		"token for its pod": {on(admission.Create, core.ServiceAccounts, "token", "default", token("mine", "u1", "vault"), nil), ""},
		"token, other audience": {on(admission.Create, core.ServiceAccounts, "token", "default", token("mine", "u1", "bank"), nil),
			`serviceaccounts "default" is forbidden: system:node:n1 is not authorized to request tokens for audience "bank"`},
		"token for a driver": {on(admission.Create, core.ServiceAccounts, "token", "default", token("inline", "u1", "vault"), nil), ""},
		"token no driver asked for": {on(admission.Create, core.ServiceAccounts, "token", "default", token("inline", "u1", "bank"), nil),
			`serviceaccounts "default" is forbidden: error validating audience "bank": csidriver.storage.k8s.io "gone" not found`},
		"token for a claim's driver": {on(admission.Create, core.ServiceAccounts, "token", "default", token("claims", "u1", "vault"), nil), ""},
		"token not for a claim's": {on(admission.Create, core.ServiceAccounts, "token", "default", token("claims", "u1", "bank"), nil),
			`serviceaccounts "default" is forbidden: system:node:n1 is not authorized to request tokens for audience "bank"`},
		"token for another's": {on(admission.Create, core.ServiceAccounts, "token", "default", token("theirs", "u1"), nil),
			`serviceaccounts "default" is forbidden: node requested token bound to a pod scheduled on a different node`},
		"token for nobody": {on(admission.Create, core.ServiceAccounts, "token", "default", token("", ""), nil),
			`serviceaccounts "default" is forbidden: node requested token not bound to a pod`},
		"token without a uid": {on(admission.Create, core.ServiceAccounts, "token", "default", token("mine", ""), nil),
			`serviceaccounts "default" is forbidden: node requested token with a pod binding without a uid`},
	} {
		check(t, name, chain(t, "NamespaceLifecycle", "ServiceAccount", "TaintNodesByCondition", "PodTopologyLabels").Admit(t.Context(), c.a), c.want)
	}
	stranger := on(admission.Delete, core.Pods, "", "theirs", nil, onNode("n2"))
	stranger.User = &request.User{Username: "admin"}
	check(t, "somebody who is no node", chain(t).Admit(t.Context(), stranger), "")
}
