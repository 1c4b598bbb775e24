// Package claimstatus requires, besides the right to write a resource claim's status,
// the right to bind claims ("resourceclaims/binding") for its allocation, and the
// right to act for a driver ("resourceclaims/driver") for the status of that driver's
// devices (KEP 4817, "Granular status authorization").
//
// It is at the end of the admission chain and can't be switched off: in upstream it is
// part of validation.
package claimstatus

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Plugin is the check.
type Plugin struct{ Authorizer authz.Authorizer }

// Handles implements admission.Plugin.
func (Plugin) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate implements admission.Validator.
func (p Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	now, ok := a.Object.(*resourcev1.ResourceClaim)
	old, okOld := a.OldObject.(*resourcev1.ResourceClaim)
	info := request.InfoFrom(ctx)
	if !ok || !okOld || a.Subresource != "status" || a.User == nil || info == nil {
		return nil
	}
	who := statusWriter{ctx, p.Authorizer, a.User, info.Verb}
	errs := append(who.checkBinding(&now.Status, &old.Status), who.checkDevices(&now.Status, &old.Status, a.Namespace)...)
	if len(errs) == 0 {
		return nil
	}
	return registry.Invalid(a.Resource.GVK().GroupKind(), a.Name, errs)
}

// statusWriter is the user who writes a status, and the verb.
type statusWriter struct {
	ctx        context.Context
	authorizer authz.Authorizer
	user       *request.User
	verb       string
}

// authorize returns nil, or the refusal.
func (w statusWriter) authorize(verb, subresource, namespace, name string) error {
	asks := &authz.Attributes{User: w.user, Info: request.Info{
		Resource: true, Verb: verb, APIGroup: resourcev1.GroupName, APIVersion: "v1",
		ResourceName: "resourceclaims", Subresource: subresource, Namespace: namespace, Name: name,
	}}
	decision, reason, err := w.authorizer.Authorize(w.ctx, asks)
	if decision == authz.Allow {
		return nil
	}
	switch {
	case err != nil && reason != "":
		reason = fmt.Sprintf("%v: %s", err, reason)
	case err != nil:
		reason = err.Error()
	}
	return authz.Forbidden(asks, reason)
}

func (w statusWriter) checkBinding(now, old *resourcev1.ResourceClaimStatus) field.ErrorList {
	if equality.Semantic.DeepEqual(now.Allocation, old.Allocation) && equality.Semantic.DeepEqual(now.ReservedFor, old.ReservedFor) {
		return nil
	}
	err := w.authorize(w.verb, resourcev1.SubresourceBinding, "", "")
	if err == nil {
		return nil
	}
	const refusal = `changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="%s" permission: %s`
	return field.ErrorList{field.Forbidden(field.NewPath("status", "allocation"), fmt.Sprintf(refusal, w.verb, err))}
}

func (w statusWriter) checkDevices(now, old *resourcev1.ResourceClaimStatus, namespace string) field.ErrorList {
	if now.Allocation == nil { // then there is no device status
		return nil
	}
	verbs := []string{resourcev1.VerbPrefixArbitraryNode + w.verb}
	if node := onlyNode(now.Allocation); node != "" && runsOnNode(w.user, node) {
		verbs = append([]string{resourcev1.VerbPrefixAssociatedNode + w.verb}, verbs...)
	}
	var errs field.ErrorList
	for _, driver := range sets.List(changedDrivers(now.Devices, old.Devices)) {
		if err := w.authorizeAny(verbs, namespace, driver); err != nil {
			errs = append(errs, field.Forbidden(field.NewPath("status", "devices"),
				fmt.Sprintf(`changing status.devices requires resource="resourceclaims/driver", verb="%s" permission: %s`, verbs, err)))
		}
	}
	return errs
}

func (w statusWriter) authorizeAny(verbs []string, namespace, driver string) error {
	var first error
	for _, verb := range verbs {
		err := w.authorize(verb, resourcev1.SubresourceDriver, namespace, driver)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

// changedDrivers are the drivers whose devices' status has changed.
func changedDrivers(now, old []resourcev1.AllocatedDeviceStatus) sets.Set[string] {
	type device struct{ driver, pool, device, share string }
	of := func(d *resourcev1.AllocatedDeviceStatus) device {
		return device{d.Driver, d.Pool, d.Device, ptr.Deref(d.ShareID, "")}
	}
	before := map[device]*resourcev1.AllocatedDeviceStatus{}
	for i := range old {
		before[of(&old[i])] = &old[i]
	}
	drivers := sets.New[string]()
	for i := range now {
		was := before[of(&now[i])]
		if was == nil || !equality.Semantic.DeepEqual(*was, now[i]) {
			drivers.Insert(now[i].Driver)
		}
		delete(before, of(&now[i]))
	}
	for gone := range before {
		drivers.Insert(gone.driver)
	}
	return drivers
}

// onlyNode is the only node on which the allocated devices can be used, or "".
func onlyNode(a *resourcev1.AllocationResult) string {
	if a.NodeSelector == nil || len(a.NodeSelector.NodeSelectorTerms) != 1 {
		return ""
	}
	term := a.NodeSelector.NodeSelectorTerms[0]
	if len(term.MatchExpressions) != 0 || len(term.MatchFields) != 1 {
		return ""
	}
	f := term.MatchFields[0]
	if f.Key != metav1.ObjectNameField || f.Operator != corev1.NodeSelectorOpIn || len(f.Values) != 1 {
		return ""
	}
	return f.Values[0]
}

// runsOnNode reports whether the user is a service account whose token is bound to a pod of
// that node.
func runsOnNode(user *request.User, node string) bool {
	nodes := user.Extra[authn.ExtraNodeName]
	return strings.HasPrefix(user.Username, core.ServiceAccountPrefix) && len(nodes) == 1 && nodes[0] == node
}
