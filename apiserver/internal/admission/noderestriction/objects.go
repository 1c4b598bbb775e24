package noderestriction

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

var (
	claims       = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	driversOf    = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"}
	deviceSlices = schema.GroupVersionResource{Group: resourcev1.GroupName, Version: "v1", Resource: "resourceslices"}
	signing      = schema.GroupVersionResource{Group: certificatesv1.GroupName, Version: "v1", Resource: "certificatesigningrequests"}
	podSigning   = schema.GroupVersionResource{Group: certificatesv1.GroupName, Version: "v1", Resource: "podcertificaterequests"}
)

func admitDrivers(node string, a *admission.Attributes) error {
	if nameOf(a) != node {
		return errors.New("can only access CSINode with the same name as the requesting node")
	}
	return nil
}

// admitSlice: what of an update may change is for the slice itself to say, and
// its node may not.
func admitSlice(node string, a *admission.Attributes) error {
	obj, doing := a.Object, "create"
	if a.Operation != admission.Create {
		obj, doing = a.OldObject, "modify"
	}
	slice, ok := obj.(*resourcev1.ResourceSlice)
	if !ok {
		return fmt.Errorf("unexpected type %T", obj)
	}
	if slice.Spec.NodeName == nil || *slice.Spec.NodeName != node {
		return fmt.Errorf("can only %s ResourceSlice with the same NodeName as the requesting node", doing)
	}
	return nil
}

// admitClaim: kubelets tell how far they are with growing a volume.
func admitClaim(node string, a *admission.Attributes) error {
	if a.Operation != admission.Update || a.Subresource != "status" {
		return fmt.Errorf("unexpected operation %q, node %q can only update the status of persistentvolumeclaims", a.Operation, node)
	}
	claim, old := a.Object.DeepCopyObject().(*corev1.PersistentVolumeClaim), a.OldObject.(*corev1.PersistentVolumeClaim)
	claim.ManagedFields, claim.ResourceVersion = old.ManagedFields, old.ResourceVersion
	claim.Status.Capacity, claim.Status.Conditions = old.Status.Capacity, old.Status.Conditions
	claim.Status.AllocatedResources, claim.Status.AllocatedResourceStatuses = old.Status.AllocatedResources, old.Status.AllocatedResourceStatuses
	if !equality.Semantic.DeepEqual(claim.ObjectMeta, old.ObjectMeta) || !equality.Semantic.DeepEqual(claim.Spec, old.Spec) ||
		!equality.Semantic.DeepEqual(claim.Status, old.Status) {
		return fmt.Errorf("node %q is not allowed to update fields other than status.quantity and status.conditions", node)
	}
	return nil
}

// admitSigning: by the signers of kubelets' certificates, a node gets one of its
// own name only.
func admitSigning(a *admission.Attributes) error {
	if a.Operation != admission.Create || a.Subresource != "" {
		return nil
	}
	request, ok := a.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.Object)
	}
	switch request.Spec.SignerName {
	case certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName:
	default:
		return nil
	}
	var asked *x509.CertificateRequest
	err := errors.New("it is no PEM")
	if block, _ := pem.Decode(request.Spec.Request); block != nil {
		asked, err = x509.ParseCertificateRequest(block.Bytes)
	}
	if err != nil {
		return fmt.Errorf("unable to parse csr: %w", err)
	}
	if asked.Subject.CommonName != a.User.Username {
		return fmt.Errorf("can only create a node CSR with CN=%s", a.User.Username)
	}
	return nil
}

// requestCertificate is the verb by which a node may be allowed to ask a signer for
// certificates of a service account's pods: the signer is the resource, with a colon
// for its slash, and the name is the account's.
const requestCertificate = "request-serviceaccounts-podcertificate-signer"

// admitPodSigning: a kubelet asks for certificates of pods that run here, that
// want one of this signer or whose node may ask it, and in no other name than theirs.
func (p *Plugin) admitPodSigning(ctx context.Context, node string, a *admission.Attributes) error {
	if a.Operation != admission.Create || a.Subresource != "" {
		return fmt.Errorf("unexpected operation %q, node %q can only create PodCertificateRequests", a.Operation, node)
	}
	wanted, ok := a.Object.(*certificatesv1.PodCertificateRequest)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.Object)
	}
	spec := &wanted.Spec
	if string(spec.NodeName) != node {
		return fmt.Errorf("PodCertificateRequest.Spec.NodeName=%q, which is not the requesting node %q", spec.NodeName, node)
	}
	pod, err := p.Pods.Live(ctx, a.Namespace, spec.PodName)
	if err != nil {
		return fmt.Errorf("while retrieving pod %q named in the PodCertificateRequest: %w", a.Namespace+"/"+spec.PodName, err)
	}
	about := fmt.Sprintf("PodCertificateRequest for pod %q", pod.Namespace+"/"+pod.Name)
	switch {
	case pod.UID != spec.PodUID:
		return fmt.Errorf("%s contains pod UID (%q) which differs from running pod %q", about, spec.PodUID, pod.UID)
	case pod.Spec.NodeName != node:
		return fmt.Errorf("pod %q is not running on node %q", pod.Namespace+"/"+pod.Name, node)
	case isMirror(pod):
		return fmt.Errorf("pod %q is a mirror pod", pod.Namespace+"/"+pod.Name)
	case pod.Spec.ServiceAccountName != spec.ServiceAccountName:
		return fmt.Errorf("%s contains serviceAccountName (%q) that differs from running pod (%q)", about, spec.ServiceAccountName, pod.Spec.ServiceAccountName)
	case !wantsCertificate(pod, spec.SignerName) && !p.may(ctx, a, request.Info{
		Verb: requestCertificate, APIGroup: podSigning.Group, APIVersion: podSigning.Version,
		ResourceName: strings.ReplaceAll(spec.SignerName, "/", ":"), Name: spec.ServiceAccountName,
	}):
		return fmt.Errorf("pod %q does not mount a podCertificate projected volume for signer %q", pod.Namespace+"/"+pod.Name, spec.SignerName)
	}
	return p.sameSurroundings(ctx, about, a.Namespace, spec)
}

// sameSurroundings: the node and the account are those that there are now.
func (p *Plugin) sameSurroundings(ctx context.Context, about, namespace string, spec *certificatesv1.PodCertificateRequestSpec) error {
	node, err := p.Nodes.Live(ctx, "", string(spec.NodeName))
	if err != nil {
		return fmt.Errorf("while retrieving node %q named in the PodCertificateRequest: %w", spec.NodeName, err)
	}
	if node.UID != spec.NodeUID {
		return fmt.Errorf("%s names node UID %q, inconsistent with the running node (%q)", about, spec.NodeUID, node.UID)
	}
	account, err := p.Accounts.Live(ctx, namespace, spec.ServiceAccountName)
	if err != nil {
		return fmt.Errorf("while retrieving service account %q named in the PodCertificateRequest: %w", spec.ServiceAccountName, err)
	}
	if account.UID != spec.ServiceAccountUID {
		return fmt.Errorf("%s names service account UID %q, which differs from the running service account (%q)", about, spec.ServiceAccountUID, account.UID)
	}
	return nil
}

func wantsCertificate(pod *core.Pod, signer string) bool {
	for i := range pod.Spec.Volumes {
		projected := pod.Spec.Volumes[i].Projected
		if projected == nil {
			continue
		}
		for _, source := range projected.Sources {
			if source.PodCertificate != nil && source.PodCertificate.SignerName == signer {
				return true
			}
		}
	}
	return false
}
