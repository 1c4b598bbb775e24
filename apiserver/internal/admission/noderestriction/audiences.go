package noderestriction

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// requestAudience is the verb by which a node may be allowed to ask for tokens of
// a service account for an audience: the audience is the resource, and the name
// is the account's.
const requestAudience = "request-serviceaccounts-token-audience"

// admitAudiences: a token of a pod is for whom a volume of the pod says, or the
// CSI driver of one, or for whom the node may ask for tokens of the account
// (Kubernetes docs, "NodeRestriction").
func (p *Plugin) admitAudiences(ctx context.Context, a *admission.Attributes, audiences []string, pod *core.Pod) error {
	if len(audiences) > 1 {
		return fmt.Errorf("node may only request 0 or 1 audiences")
	}
	asked := ""
	if len(audiences) == 1 {
		asked = audiences[0]
	}
	for i := range pod.Spec.Volumes {
		if projects(&pod.Spec.Volumes[i], asked) {
			return nil
		}
	}
	for i := range pod.Spec.Volumes {
		if wants, err := p.driverWants(ctx, pod, &pod.Spec.Volumes[i], asked); wants || err != nil {
			return err
		}
	}
	if p.Authorizer != nil && asked != "" {
		decision, _, err := p.Authorizer.Authorize(ctx, &authz.Attributes{User: a.User, Info: request.Info{
			Resource: true, Verb: requestAudience, APIVersion: "*", ResourceName: asked, Namespace: a.Namespace, Name: a.Name,
		}})
		if err == nil && decision == authz.Allow {
			return nil
		}
	}
	return fmt.Errorf("%s is not authorized to request tokens for audience %q", a.User.Username, asked)
}

func projects(v *corev1.Volume, audience string) bool {
	return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
		return s.ServiceAccountToken != nil && s.ServiceAccountToken.Audience == audience
	})
}

// driverWants tells whether the driver of a volume has asked for such tokens.
func (p *Plugin) driverWants(ctx context.Context, pod *core.Pod, v *corev1.Volume, audience string) (bool, error) {
	name, err := p.driverOf(ctx, pod, v)
	if name == "" || err != nil {
		return false, err
	}
	driver, err := found(p.Drivers.Live(ctx, "", name))
	if driver == nil || err != nil {
		return false, err
	}
	return slices.ContainsFunc(driver.Spec.TokenRequests, func(r storagev1.TokenRequest) bool { return r.Audience == audience }), nil
}

// driverOf is the CSI driver of a volume, "" where it has none: yet, perhaps.
func (p *Plugin) driverOf(ctx context.Context, pod *core.Pod, v *corev1.Volume) (string, error) {
	claimed := ""
	switch {
	case v.CSI != nil:
		return v.CSI.Driver, nil
	case v.PersistentVolumeClaim != nil:
		claimed = v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		claimed = pod.Name + "-" + v.Name
	default:
		return "", nil
	}
	claim, err := found(p.Claims.Live(ctx, pod.Namespace, claimed))
	if claim == nil || err != nil || claim.Spec.VolumeName == "" {
		return "", err
	}
	volume, err := found(p.Volumes.Live(ctx, "", claim.Spec.VolumeName))
	if volume == nil || err != nil || volume.Spec.CSI == nil {
		return "", err
	}
	return volume.Spec.CSI.Driver, nil
}
