package noderestriction

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// podOn is a pod on a node, which change changes.
func podOn(node string, change func(*core.Pod)) *core.Pod {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}, Spec: core.PodSpec{NodeName: node}}
	if change != nil {
		change(pod)
	}
	return pod
}

// mirrorOn is the mirror of a static pod of n1.
func mirrorOn(node string, change func(*core.Pod)) *core.Pod {
	return podOn(node, func(pod *core.Pod) {
		pod.Annotations = map[string]string{core.ConfigMirrorAnnotation: "hash"}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "n1-uid", Controller: new(true)}}
		if change != nil {
			change(pod)
		}
	})
}

// kubeletOf is what n1's kubelet asks for.
func kubeletOf(a *admission.Attributes) *admission.Attributes {
	a.User = &request.User{Username: "system:node:n1", Groups: []string{core.GroupNodes}}
	return a
}

// TestPodsOfNodes: what the kubelet of n1 may do with pods, in kube-apiserver's words.
func TestPodsOfNodes(t *testing.T) {
	volume := func(v corev1.VolumeSource) func(*core.Pod) {
		return func(pod *core.Pod) { pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: v}} }
	}
	projected := func(p corev1.VolumeProjection) func(*core.Pod) {
		return volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{p}}})
	}
	owner := func(change func(*metav1.OwnerReference)) func(*core.Pod) {
		return func(pod *core.Pod) { change(&pod.OwnerReferences[0]) }
	}
	status := func(old, now *core.Pod) *admission.Attributes {
		return &admission.Attributes{Operation: admission.Update, Subresource: "status", Object: now, OldObject: old}
	}
	create := func(pod *core.Pod) *admission.Attributes {
		return &admission.Attributes{Operation: admission.Create, Object: pod}
	}
	p := &Plugin{
		Pods:  stored[*core.Pod]{"web": podOn("n1", nil), "db": podOn("n2", nil)},
		Nodes: stored[*core.Node]{"n1": {ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1-uid"}}},
	}
	const onlyThese = `, node "n1" can only create, update status of, evict and delete mirror pods and its own`
	for name, c := range map[string]struct {
		asked *admission.Attributes
		want  string
	}{
		"its own pod's status": {status(podOn("n1", nil), podOn("n1", func(p *core.Pod) { p.Status.Phase = corev1.PodRunning })), ""},
		"another's status": {status(podOn("n2", nil), podOn("n2", nil)),
			`node "n1" can only update pod status for pods with spec.nodeName set to itself`},
		"labels, by the status": {status(podOn("n1", nil), podOn("n1", func(p *core.Pod) { p.Labels = map[string]string{"a": "b"} })),
			`node "n1" cannot update labels through pod status`},
		"claims, by the status": {status(podOn("n1", nil),
			podOn("n1", func(p *core.Pod) { p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "c"}} })),
			`node "n1" cannot update resource claim statues`},
		"more claims, by the status": {status(podOn("n1", nil),
			podOn("n1", func(p *core.Pod) { p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{} })),
			`node "n1" cannot update extended resource claim status`},
		"the pod itself": {&admission.Attributes{Operation: admission.Update, Object: podOn("n1", nil), OldObject: podOn("n1", nil)},
			`unexpected operation "UPDATE"` + onlyThese},
		"a binding": {&admission.Attributes{Operation: admission.Create, Subresource: "binding", Name: "web"},
			`unexpected operation "CREATE"` + onlyThese},
		"its own pod's end": {&admission.Attributes{Operation: admission.Delete, Name: "web"}, ""},
		"another's end": {&admission.Attributes{Operation: admission.Delete, Name: "db"},
			`node "n1" can only delete pods with spec.nodeName set to itself`},
		"another's end, of many": {&admission.Attributes{Operation: admission.Delete, Name: "web", OldObject: podOn("n2", nil)},
			`node "n1" can only delete pods with spec.nodeName set to itself`},
		"the end of one that is gone": {&admission.Attributes{Operation: admission.Delete, Name: "gone"}, ""},
		"its own pod's eviction":      {&admission.Attributes{Operation: admission.Create, Subresource: "eviction", Name: "web"}, ""},
		"another's eviction": {&admission.Attributes{Operation: admission.Create, Subresource: "eviction", Name: "db"},
			`node "n1" can only evict pods with spec.nodeName set to itself`},
		"a mirror": {create(mirrorOn("n1", nil)), ""},
		"a pod that is no mirror": {create(podOn("n1", nil)),
			`pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods`},
		"another's mirror": {create(mirrorOn("n2", nil)), `node "n1" can only create pods with spec.nodeName set to itself`},
		"a mirror without an owner": {create(mirrorOn("n1", func(p *core.Pod) { p.OwnerReferences = nil })),
			`node "n1" can only create pods with an owner reference set to itself`},
		"with two owners": {create(mirrorOn("n1", func(p *core.Pod) { p.OwnerReferences = append(p.OwnerReferences, p.OwnerReferences[0]) })),
			`node "n1" can only create pods with a single owner reference set to itself`},
		"owned by another node": {create(mirrorOn("n1", owner(func(o *metav1.OwnerReference) { o.Name = "n2" }))),
			`node "n1" can only create pods with an owner reference set to itself`},
		"owned by another kind": {create(mirrorOn("n1", owner(func(o *metav1.OwnerReference) { o.Kind = "Pod" }))),
			`node "n1" can only create pods with an owner reference set to itself`},
		"owned by another version": {create(mirrorOn("n1", owner(func(o *metav1.OwnerReference) { o.APIVersion = "v2" }))),
			`node "n1" can only create pods with an owner reference set to itself`},
		"not controlled": {create(mirrorOn("n1", owner(func(o *metav1.OwnerReference) { o.Controller = nil }))),
			`node "n1" can only create pods with a controller owner reference set to itself`},
		"that keeps its node": {create(mirrorOn("n1", owner(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = new(true) }))),
			`node "n1" must not set blockOwnerDeletion on an owner reference`},
		"of an earlier node": {create(mirrorOn("n1", owner(func(o *metav1.OwnerReference) { o.UID = "other" }))),
			`node n1 UID mismatch: expected other got n1-uid`},
		"with a service account": {create(mirrorOn("n1", func(p *core.Pod) { p.Spec.ServiceAccountName = "web" })),
			`node "n1" can not create pods that reference a service account`},
		"with a secret": {create(mirrorOn("n1", volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}))),
			`node "n1" can not create pods that reference secrets`},
		"with a config map": {create(mirrorOn("n1",
			volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}))),
			`node "n1" can not create pods that reference configmaps`},
		"with a claim": {create(mirrorOn("n1", volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}))),
			`node "n1" can not create pods that reference persistentvolumeclaims`},
		"with an ephemeral claim": {create(mirrorOn("n1", volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}))),
			`node "n1" can not create pods that reference persistentvolumeclaims`},
		"with claimed devices": {create(mirrorOn("n1", func(p *core.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c"}} })),
			`node "n1" can not create pods that reference resourceclaims`},
		"with a driver": {create(mirrorOn("n1", volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}))),
			`node "n1" can not create pods that reference csidrivers (via CSI volumes)`},
		"with endpoints": {create(mirrorOn("n1", volume(corev1.VolumeSource{Glusterfs: &corev1.GlusterfsVolumeSource{}}))),
			`node "n1" can not create pods that reference endpoints (via glusterFS volumes)`},
		"with trust bundles": {create(mirrorOn("n1", projected(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}}))),
			`node "n1" can not create pods that reference clustertrustbundles`},
		"with certificates": {create(mirrorOn("n1", projected(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{}}))),
			`node "n1" can not create pods that reference podcertificates`},
		"with a token": {create(mirrorOn("n1", projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}}))),
			`node "n1" can not create pods that reference secrets, configmaps or service account tokens`},
		"with its own fields":          {create(mirrorOn("n1", projected(corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}}))), ""},
		"with directories of the node": {create(mirrorOn("n1", volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}))), ""},
	} {
		c.asked.Resource, c.asked.Namespace = core.Pods, "shop"
		got := ""
		if err := p.Admit(t.Context(), kubeletOf(c.asked)); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestTokensOfNodes: a kubelet gets tokens that are bound to a pod of its node, and for an audience
// that the pod asks for.
func TestTokensOfNodes(t *testing.T) {
	asking := func(pod *core.Pod) {
		pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{DownwardAPI: &corev1.DownwardAPIProjection{}}, {ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault"}},
		}}}}}
	}
	p := &Plugin{Pods: stored[*core.Pod]{"web": podOn("n1", asking), "db": podOn("n2", asking)}}
	ref := func(kind, name, uid string) *authenticationv1.BoundObjectReference {
		return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID(uid)}
	}
	const notAPod = "node requested token not bound to a pod"
	for name, c := range map[string]struct {
		ref       *authenticationv1.BoundObjectReference
		audiences []string
		want      string
	}{
		"of its pod":             {ref("Pod", "web", "u1"), []string{"vault"}, ""},
		"for another audience":   {ref("Pod", "web", "u1"), []string{"bank"}, `system:node:n1 is not authorized to request tokens for audience "bank"`},
		"for the API":            {ref("Pod", "web", "u1"), nil, `system:node:n1 is not authorized to request tokens for audience ""`},
		"for two audiences":      {ref("Pod", "web", "u1"), []string{"vault", "vault"}, "node may only request 0 or 1 audiences"},
		"of another's pod":       {ref("Pod", "db", "u1"), []string{"vault"}, "node requested token bound to a pod scheduled on a different node"},
		"of a pod without a uid": {ref("Pod", "web", ""), []string{"vault"}, "node requested token with a pod binding without a uid"},
		"of an earlier pod": {ref("Pod", "web", "u"), []string{"vault"},
			"the UID in the bound object reference (u) does not match the UID in record. The object might have been deleted and then recreated"},
		"of a pod that is gone": {ref("Pod", "gone", "u1"), []string{"vault"}, `things "gone" not found`},
		"bound to a secret":     {ref("Secret", "web", "u1"), []string{"vault"}, notAPod},
		"bound to nothing":      {nil, []string{"vault"}, notAPod},
		"bound to no name":      {ref("Pod", "", "u1"), []string{"vault"}, notAPod},
	} {
		a := kubeletOf(&admission.Attributes{
			Operation: admission.Create, Resource: core.ServiceAccounts, Subresource: "token", Namespace: "shop", Name: "web",
			Object: &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: c.audiences, BoundObjectRef: c.ref}},
		})
		got := ""
		if err := p.Admit(t.Context(), a); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
