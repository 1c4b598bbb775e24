package noderestriction

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "NodeRestriction"

// Objects finds objects of one kind as they are stored now; lookup.Objects does.
type Objects[T core.Object] interface {
	Live(ctx context.Context, namespace, name string) (T, error)
}

// Plugin is the plugin.
type Plugin struct {
	Pods     Objects[*core.Pod]
	Nodes    Objects[*core.Node]
	Accounts Objects[*core.ServiceAccount]
	Claims   Objects[*corev1.PersistentVolumeClaim]
	Volumes  Objects[*corev1.PersistentVolume]
	Drivers  Objects[*storagev1.CSIDriver]
	// RangesGiven: the server gives nodes the ranges of their pods (--allocate-node-cidrs),
	// so they may not choose them.
	RangesGiven bool
	// Authorizer decides for which other audiences a node may request tokens.
	Authorizer authz.Authorizer
}

// Handles everything that changes something.
func (*Plugin) Handles(op admission.Operation) bool { return op != admission.Connect }

// Admit refuses what a kubelet may not do, and lets all other users pass.
func (p *Plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	node, isNode := nodeOf(a.User)
	if !isNode {
		return nil
	}
	if node == "" {
		return fmt.Errorf("could not determine node from user %q", a.User.Username)
	}
	switch a.Resource.GVR() {
	case core.Pods.GVR():
		return p.admitPod(ctx, node, a)
	case core.Nodes.GVR():
		return p.admitNode(node, a)
	case core.ServiceAccounts.GVR():
		return p.admitToken(ctx, node, a)
	case core.Leases.GVR():
		return admitLease(node, a)
	case core.PersistentVolumeClaims.GVR():
		return admitClaim(node, a)
	case csiNodes:
		return admitDrivers(node, a)
	case resourceSlices:
		return admitSlice(node, a)
	case core.CertificateSigningRequests.GVR():
		return admitSigning(a)
	case podCertificateRequests:
		return p.admitPodSigning(ctx, node, a)
	}
	return nil
}

func nodeOf(user *request.User) (string, bool) {
	if user == nil || !slices.Contains(user.Groups, core.GroupNodes) {
		return "", false
	}
	return strings.CutPrefix(user.Username, core.UserNodePrefix)
}

// nameOf is the name of the requested object; for a create it is in the object.
func nameOf(a *admission.Attributes) string {
	if a.Operation == admission.Create {
		return a.Object.GetName()
	}
	return a.Name
}

func admitLease(node string, a *admission.Attributes) error {
	if a.Namespace != core.NamespaceNodeLease {
		return fmt.Errorf("can only access leases in the %q system namespace", core.NamespaceNodeLease)
	}
	if nameOf(a) != node {
		return fmt.Errorf("can only access node lease with the same name as the requesting node")
	}
	return nil
}

// storedPod is the pod that a request is about, or nil if it is gone: then
// there is nothing to protect, and the verb itself answers 404.
func (p *Plugin) storedPod(ctx context.Context, a *admission.Attributes) (*core.Pod, error) {
	if old, ok := a.OldObject.(*core.Pod); ok && old != nil {
		return old, nil
	}
	return ignoreNotFound(p.Pods.Live(ctx, a.Namespace, a.Name))
}

// ignoreNotFound returns nil for an object that does not exist.
func ignoreNotFound[T any](obj *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}
