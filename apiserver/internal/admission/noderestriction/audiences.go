package noderestriction

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// requestAudience is the verb that allows a node to request a service account's
// tokens for an audience: the audience is the resource, and the name is the
// account's.
const requestAudience = "request-serviceaccounts-token-audience"

// admitAudiences checks a pod token's audience: a volume of the pod or its CSI
// driver has to want it, or the node has to be allowed to request it for the
// account (Kubernetes docs, "NodeRestriction").
func (p *Plugin) admitAudiences(ctx context.Context, a *admission.Attributes, audiences []string, pod *core.Pod) error {
	if len(audiences) > 1 {
		return fmt.Errorf("node may only request 0 or 1 audiences")
	}
	asked := ""
	if len(audiences) == 1 {
		asked = audiences[0]
	}
	wanted, err := p.volumesWantAudience(ctx, pod, asked)
	if err != nil {
		return fmt.Errorf("error validating audience %q: %v", asked, err) //nolint:errorlint // a missing object means 403, not 404
	}
	if wanted {
		return nil
	}
	if p.isAllowed(ctx, a, request.Info{Verb: requestAudience, APIVersion: "*", ResourceName: asked, Name: a.Name}) {
		return nil
	}
	return fmt.Errorf("%s is not authorized to request tokens for audience %q", a.User.Username, asked)
}

// isAllowed reports whether the node has a right on a resource in the namespace of its
// request.
func (p *Plugin) isAllowed(ctx context.Context, a *admission.Attributes, right request.Info) bool {
	if p.Authorizer == nil {
		return false
	}
	right.Resource, right.Namespace = true, a.Namespace
	return authz.Allowed(ctx, p.Authorizer, a.User, right)
}

// volumesWantAudience reports whether a volume of the pod, or its driver, wants such
// tokens. If none does, the error is about what could not be looked up.
func (p *Plugin) volumesWantAudience(ctx context.Context, pod *core.Pod, audience string) (bool, error) {
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if projectsAudience(v, audience) {
			return true, nil
		}
		wants, err := p.driverWantsAudience(ctx, pod, v, audience)
		if wants {
			return true, nil
		}
		errs = append(errs, err)
	}
	return false, errors.Join(errs...)
}

func projectsAudience(v *corev1.Volume, audience string) bool {
	return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
		return s.ServiceAccountToken != nil && s.ServiceAccountToken.Audience == audience
	})
}

// driverWantsAudience reports whether the driver of a volume wants such tokens.
func (p *Plugin) driverWantsAudience(ctx context.Context, pod *core.Pod, v *corev1.Volume, audience string) (bool, error) {
	name, err := p.driverOf(ctx, pod, v)
	if name == "" || err != nil {
		return false, err
	}
	driver, err := p.Drivers.Live(ctx, "", name)
	if err != nil {
		return false, withKind(err, schema.GroupResource{Group: storagev1.GroupName, Resource: "csidriver"}, name)
	}
	return slices.ContainsFunc(driver.Spec.TokenRequests, func(r storagev1.TokenRequest) bool { return r.Audience == audience }), nil
}

// driverOf is the CSI driver of a volume, "" if it has none.
func (p *Plugin) driverOf(ctx context.Context, pod *core.Pod, v *corev1.Volume) (string, error) {
	if v.CSI != nil {
		return v.CSI.Driver, nil
	}
	if claim := core.ClaimName(pod, v); claim != "" {
		return p.driverOfClaim(ctx, pod.Namespace, claim)
	}
	return driverInPod(&v.VolumeSource), nil
}

func (p *Plugin) driverOfClaim(ctx context.Context, namespace, name string) (string, error) {
	claim, err := p.Claims.Live(ctx, namespace, name)
	if err != nil {
		return "", withKind(err, schema.GroupResource{Resource: "persistentvolumeclaim"}, name)
	}
	if claim.Spec.VolumeName == "" {
		return "", apierrors.NewNotFound(schema.GroupResource{Resource: "persistentvolume"}, "")
	}
	volume, err := p.Volumes.Live(ctx, "", claim.Spec.VolumeName)
	if err != nil {
		return "", withKind(err, schema.GroupResource{Resource: "persistentvolume"}, claim.Spec.VolumeName)
	}
	return driverOfPersistent(&volume.Spec.PersistentVolumeSource), nil
}

// withKind returns err, naming the kind of a missing object in the singular, as
// upstream does here.
func withKind(err error, kind schema.GroupResource, name string) error {
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(kind, name)
	}
	return err
}
