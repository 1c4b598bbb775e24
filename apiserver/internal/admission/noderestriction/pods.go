package noderestriction

import (
	"context"
	"fmt"
	"maps"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/informer"
	"kctl/proto/core"
)

func (p *Plugin) admitPod(ctx context.Context, node string, a *admission.Attributes) error {
	switch {
	case a.Subresource == "" && a.Operation == admission.Create:
		return p.admitMirror(ctx, node, a.Object.(*core.Pod))
	case a.Subresource == "" && a.Operation == admission.Delete:
		return p.checkOwnPod(ctx, node, a, "delete pods")
	case a.Subresource == "status" && a.Operation == admission.Update:
		return admitStatus(node, a)
	case a.Subresource == "eviction" && a.Operation == admission.Create:
		return p.checkOwnPod(ctx, node, a, "evict pods")
	}
	return fmt.Errorf("unexpected operation %q, node %q can only create, update status of, evict and delete mirror pods and its own",
		a.Operation, node)
}

func (p *Plugin) checkOwnPod(ctx context.Context, node string, a *admission.Attributes, doing string) error {
	pod, err := p.storedPod(ctx, a)
	if err != nil || pod == nil {
		return err
	}
	if pod.Spec.NodeName != node {
		return fmt.Errorf("node %q can only %s with spec.nodeName set to itself", node, doing)
	}
	return nil
}

func admitStatus(node string, a *admission.Attributes) error {
	pod, old := a.Object.(*core.Pod), a.OldObject.(*core.Pod)
	if old.Spec.NodeName != node {
		return fmt.Errorf("node %q can only update pod status for pods with spec.nodeName set to itself", node)
	}
	if !maps.Equal(pod.Labels, old.Labels) {
		return fmt.Errorf("node %q cannot update labels through pod status", node)
	}
	if !equality.Semantic.DeepEqual(pod.Status.ResourceClaimStatuses, old.Status.ResourceClaimStatuses) {
		return fmt.Errorf("node %q cannot update resource claim statues", node) // upstream's word
	}
	if !equality.Semantic.DeepEqual(pod.Status.ExtendedResourceClaimStatus, old.Status.ExtendedResourceClaimStatus) {
		return fmt.Errorf("node %q cannot update extended resource claim status", node)
	}
	return nil
}

// admitMirror lets a kubelet create only mirror pods, which represent static
// pods in the API and can't depend on API objects.
func (p *Plugin) admitMirror(ctx context.Context, node string, pod *core.Pod) error {
	if !core.IsMirror(pod) {
		return fmt.Errorf("pod does not have %q annotation, node %q can only create mirror pods", core.ConfigMirrorAnnotation, node)
	}
	if pod.Spec.NodeName != node {
		return fmt.Errorf("node %q can only create pods with spec.nodeName set to itself", node)
	}
	if err := p.checkOwnedByNode(ctx, node, pod.OwnerReferences); err != nil {
		return err
	}
	if what := referencedObject(pod); what != "" {
		return fmt.Errorf("node %q can not create pods that reference %s", node, what)
	}
	return nil
}

// checkOwnedByNode checks a mirror pod's owner: its own node, so that the pod goes
// with it, and not another of the same name.
func (p *Plugin) checkOwnedByNode(ctx context.Context, node string, owners []metav1.OwnerReference) error {
	if len(owners) > 1 {
		return fmt.Errorf("node %q can only create pods with a single owner reference set to itself", node)
	}
	if len(owners) == 0 || owners[0].APIVersion != "v1" || owners[0].Kind != "Node" || owners[0].Name != node {
		return fmt.Errorf("node %q can only create pods with an owner reference set to itself", node)
	}
	owner := owners[0]
	if !ptr.Deref(owner.Controller, false) {
		return fmt.Errorf("node %q can only create pods with a controller owner reference set to itself", node)
	}
	if owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion {
		return fmt.Errorf("node %q must not set blockOwnerDeletion on an owner reference", node)
	}
	stored, err := p.Nodes.Live(ctx, "", node)
	if err != nil {
		return err
	}
	if owner.UID != stored.UID {
		return fmt.Errorf("node %s UID mismatch: expected %s got %s", node, owner.UID, stored.UID)
	}
	return nil
}

// referencedObject names an API object that a pod refers to, through which its node
// could gain access. It uses the same references as authorization, so that no
// kind of volume is missed.
func referencedObject(pod *core.Pod) string {
	refers := informer.PodOf(pod)
	switch {
	case refers.ServiceAccount != "":
		return "a service account"
	case len(refers.Secrets) > 0:
		return "secrets"
	case len(refers.ConfigMaps) > 0:
		return "configmaps"
	case len(refers.Claims) > 0:
		return "persistentvolumeclaims"
	case len(pod.Spec.ResourceClaims) > 0:
		return "resourceclaims"
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Ephemeral != nil {
			return "persistentvolumeclaims"
		}
		if v.CSI != nil { // its driver may be given tokens
			return "csidrivers (via CSI volumes)"
		}
		if v.Glusterfs != nil {
			return "endpoints (via glusterFS volumes)"
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if what := projectedSource(&source); what != "" {
				return what
			}
		}
	}
	return ""
}

func projectedSource(source *corev1.VolumeProjection) string {
	switch {
	case source.DownwardAPI != nil:
		return ""
	case source.ClusterTrustBundle != nil:
		return "clustertrustbundles"
	case source.PodCertificate != nil:
		return "podcertificates"
	}
	return "secrets, configmaps or service account tokens"
}

// admitToken lets a kubelet request tokens for its own pods only, and for
// audiences that the pod names.
func (p *Plugin) admitToken(ctx context.Context, node string, a *admission.Attributes) error {
	if a.Subresource != "token" {
		return nil // the authorizer decides on the accounts themselves
	}
	var spec *authenticationv1.TokenRequestSpec
	if request, ok := a.Object.(*authenticationv1.TokenRequest); ok {
		spec = &request.Spec
	}
	if spec == nil {
		return fmt.Errorf("unexpected type %T", a.Object)
	}
	ref := spec.BoundObjectRef
	if ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || ref.Name == "" {
		return fmt.Errorf("node requested token not bound to a pod")
	}
	if ref.UID == "" {
		return fmt.Errorf("node requested token with a pod binding without a uid")
	}
	pod, err := p.Pods.Live(ctx, a.Namespace, ref.Name)
	if err != nil {
		return err
	}
	if ref.UID != pod.UID {
		return fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have "+
			"been deleted and then recreated", ref.UID)
	}
	if pod.Spec.NodeName != node {
		return fmt.Errorf("node requested token bound to a pod scheduled on a different node")
	}
	return p.admitAudiences(ctx, a, spec.Audiences, pod)
}
