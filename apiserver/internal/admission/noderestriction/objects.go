package noderestriction

import (
	"context"
	"errors"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/status"
	"kctl/proto/core"
	"kctl/proto/pki"
)

var (
	csiNodes               = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"}
	resourceSlices         = schema.GroupVersionResource{Group: resourcev1.GroupName, Version: "v1", Resource: "resourceslices"}
	podCertificateRequests = schema.GroupVersionResource{Group: certificatesv1.GroupName, Version: "v1", Resource: "podcertificaterequests"}
)

func admitDrivers(node string, a *admission.Attributes) error {
	if nameOf(a) != node {
		return errors.New("can only access CSINode with the same name as the requesting node")
	}
	return nil
}

// admitSlice checks that a slice belongs to the node. Validation decides what
// an update may change, which excludes the node's name.
func admitSlice(node string, a *admission.Attributes) error {
	obj, doing := a.Object, "create"
	if a.Operation != admission.Create {
		obj, doing = a.OldObject, "modify"
	}
	slice, ok := obj.(*resourcev1.ResourceSlice)
	if !ok {
		return fmt.Errorf("unexpected type %T", obj)
	}
	if ptr.Deref(slice.Spec.NodeName, "") != node {
		return fmt.Errorf("can only %s ResourceSlice with the same NodeName as the requesting node", doing)
	}
	return nil
}

// admitClaim lets kubelets report the progress of resizing a volume.
func admitClaim(node string, a *admission.Attributes) error {
	if a.Operation != admission.Update || a.Subresource != "status" {
		return fmt.Errorf("unexpected operation %q, node %q can only update the status of persistentvolumeclaims", a.Operation, node)
	}
	claim, old := a.Object.DeepCopyObject().(*corev1.PersistentVolumeClaim), a.OldObject.(*corev1.PersistentVolumeClaim)
	claim.ManagedFields, claim.ResourceVersion = old.ManagedFields, old.ResourceVersion
	claim.Status.Capacity, claim.Status.Conditions = old.Status.Capacity, old.Status.Conditions
	claim.Status.AllocatedResources = old.Status.AllocatedResources
	claim.Status.AllocatedResourceStatuses = old.Status.AllocatedResourceStatuses
	if !equality.Semantic.DeepEqual(claim.ObjectMeta, old.ObjectMeta) ||
		!equality.Semantic.DeepEqual(claim.Spec, old.Spec) || !equality.Semantic.DeepEqual(claim.Status, old.Status) {
		return fmt.Errorf("node %q is not allowed to update fields other than status.quantity and status.conditions", node)
	}
	return nil
}

// admitSigning lets a node request certificates from the kubelet signers for its
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
	asked, err := pki.ParseRequest(request.Spec.Request)
	if err != nil {
		return fmt.Errorf("unable to parse csr: %w", err)
	}
	if asked.Subject.CommonName != a.User.Username {
		return fmt.Errorf("can only create a node CSR with CN=%s", a.User.Username)
	}
	return nil
}

// requestCertificate is the verb that allows a node to request certificates for a
// service account's pods from a signer: the signer is the resource, with a colon for
// its slash, and the name is the account's.
const requestCertificate = "request-serviceaccounts-podcertificate-signer"

// admitPodSigning lets a kubelet request certificates for pods on its node only, in
// the pods' own names, and only from signers that the pod or a right of the node
// names.
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
	named := a.Namespace + "/" + spec.PodName
	about := fmt.Sprintf("PodCertificateRequest for pod %q", named)
	at, err := p.Nodes.Live(ctx, "", node)
	switch {
	case err != nil:
		return notYetError(err, "while retrieving node %q named in the PodCertificateRequest: %w", node, err)
	case at.UID != spec.NodeUID:
		return notYetError(nil, "%s names node UID %q, inconsistent with the running node (%q)", about, spec.NodeUID, at.UID)
	}
	pod, err := p.Pods.Live(ctx, a.Namespace, spec.PodName)
	switch {
	case err != nil:
		return notYetError(err, "while retrieving pod %q named in the PodCertificateRequest: %w", named, err)
	case pod.UID != spec.PodUID:
		return notYetError(nil, "%s contains pod UID (%q) which differs from running pod %q", about, spec.PodUID, pod.UID)
	case pod.Spec.NodeName != node:
		return fmt.Errorf("pod %q is not running on node %q named in the PodCertificateRequest", named, node)
	case core.IsMirror(pod):
		return fmt.Errorf("pod %q is a mirror pod", named)
	case pod.Spec.ServiceAccountName != spec.ServiceAccountName:
		return fmt.Errorf("%s contains serviceAccountName (%q) that differs from running pod (%q)",
			about, spec.ServiceAccountName, pod.Spec.ServiceAccountName)
	}
	account, err := p.Accounts.Live(ctx, a.Namespace, spec.ServiceAccountName)
	switch {
	case err != nil:
		return notYetError(err, "while retrieving service account %q named in the PodCertificateRequest: %w",
			a.Namespace+"/"+spec.ServiceAccountName, err)
	case account.UID != spec.ServiceAccountUID:
		return notYetError(nil, "%s names service account UID %q, which differs from the running service account (%q)", about,
			spec.ServiceAccountUID, account.UID)
	case !wantsCertificate(pod, spec.SignerName) && !p.maySignFor(ctx, a, spec):
		return fmt.Errorf("pod %q does not mount a podCertificate projected volume for signer %q", named, spec.SignerName)
	}
	return nil
}

func (p *Plugin) maySignFor(ctx context.Context, a *admission.Attributes, spec *certificatesv1.PodCertificateRequestSpec) bool {
	return p.isAllowed(ctx, a, request.Info{
		Verb: requestCertificate, APIGroup: podCertificateRequests.Group, APIVersion: podCertificateRequests.Version,
		ResourceName: strings.ReplaceAll(spec.SignerName, "/", ":"), Name: spec.ServiceAccountName,
	})
}

// notYetError is the answer to a kubelet that may know more than this server does: not a
// refusal, so that it tries again. cause is why an object could not be read, nil if
// it was; only a missing one may still come.
func notYetError(cause error, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if cause != nil && !apierrors.IsNotFound(cause) {
		return err
	}
	return status.WithoutReason(err.Error())
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
