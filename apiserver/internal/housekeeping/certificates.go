package housekeeping

import (
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/resources/certificatesigningrequest"
	"kctl/apiserver/internal/signing"
	"kctl/proto/core"
)

// certificateRequests is common to the loops of certificates: each looks at a
// request when it changes.
type certificateRequests struct {
	requests *informer.Informer[*certificatesv1.CertificateSigningRequest]
	store    registry.Resource
	clock    clock.Clock
}

// certificateSync does what is due for a request, and returns when to look at it again, 0 for not
// before it changes.
type certificateSync func(context.Context, *certificatesv1.CertificateSigningRequest) (again time.Duration, err error)

func newCertificateLoop(d *Dependencies, name string, syncOf func(*certificateRequests) certificateSync) (Loop, error) {
	c := &certificateRequests{clock: d.Clock}
	project := whole[*certificatesv1.CertificateSigningRequest]
	var err error
	if c.requests, c.store, err = newInformer(d, core.CertificateSigningRequests, project); err != nil {
		return nil, err
	}
	sync := syncOf(c)
	w := newWorker(name, d, several, func(ctx context.Context, key informer.Key) (time.Duration, error) {
		r, ok := c.requests.Get("", key.Name)
		if !ok {
			return 0, nil
		}
		return sync(ctx, r)
	})
	c.requests.OnChange(func(key informer.Key, _, _ **certificatesv1.CertificateSigningRequest) { w.add(key) })
	return runTogether(c.requests.Run, afterSync(w.run, c.requests.Synced())), nil
}

func findCertificateCondition(r *certificatesv1.CertificateSigningRequest,
	types ...certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	for i := range r.Status.Conditions {
		if slices.Contains(types, r.Status.Conditions[i].Type) {
			return &r.Status.Conditions[i]
		}
	}
	return nil
}

// write changes a request through /status or /approval, if it is still in the
// state that was looked at.
func (c *certificateRequests) write(ctx context.Context, seen *certificatesv1.CertificateSigningRequest, subresource string,
	change func(r *certificatesv1.CertificateSigningRequest)) error {
	err := modify(ctx, c.store, registry.Target{Name: seen.Name, Subresource: subresource}, func(current core.Object) (core.Object, error) {
		r, ok := current.(*certificatesv1.CertificateSigningRequest)
		if !ok || r.UID != seen.UID {
			return nil, apierrors.NewNotFound(core.CertificateSigningRequests.GVR().GroupResource(), seen.Name)
		}
		// The spec never changes, so the status tells whether the decision still
		// stands. Times are ignored: what was seen may be the writer's own object,
		// whose times are finer than the stored ones.
		if len(r.Status.Conditions) != len(seen.Status.Conditions) || len(r.Status.Certificate) != len(seen.Status.Certificate) {
			return r, nil // the informer will show it, too
		}
		change(r)
		return r, nil
	})
	return ignoreNotFound(err, "write the request's "+subresource)
}

func addCertificateCondition(to *certificatesv1.CertificateSigningRequest, t certificatesv1.RequestConditionType, reason, message string) {
	to.Status.Conditions = append(to.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message,
	})
}

// certificateApprover approves kubelets' requests for client certificates, if the
// requester may have one.
type certificateApprover struct {
	*certificateRequests
	authorizer authz.Authorizer
}

// reauthorizeInterval is how often authorization of a requester is checked again.
const reauthorizeInterval = time.Minute

func newCertificateApprover(d *Dependencies) (Loop, error) {
	return newCertificateLoop(d, "certificatesigningrequest-approving-controller", func(c *certificateRequests) certificateSync {
		return (&certificateApprover{c, d.Authorizer}).sync
	})
}

func (a *certificateApprover) sync(ctx context.Context, r *certificatesv1.CertificateSigningRequest) (time.Duration, error) {
	if r.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName || len(r.Status.Certificate) > 0 ||
		findCertificateCondition(r, certificatesv1.CertificateApproved, certificatesv1.CertificateDenied) != nil {
		return 0, nil
	}
	parsed, err := certificatesigningrequest.Parse(r)
	if err != nil || signing.ValidateKubeletClient(parsed, r.Spec.Usages) != nil {
		return 0, nil // for people to decide
	}
	kinds := []struct{ subresource, message string }{
		{"nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."},
	}
	if parsed.Subject.CommonName == r.Spec.Username {
		kinds = append(kinds, struct{ subresource, message string }{
			"selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.",
		})
	}
	for _, kind := range slices.Backward(kinds) {
		decision, _, err := a.authorizer.Authorize(ctx, selfApprovalAttributes(r, kind.subresource))
		if err != nil {
			return 0, fmt.Errorf("ask whether %q may have a kubelet's certificate: %w", r.Spec.Username, err)
		}
		if decision == authz.Allow {
			return 0, a.write(ctx, r, certificatesigningrequest.Approval, func(r *certificatesv1.CertificateSigningRequest) {
				addCertificateCondition(r, certificatesv1.CertificateApproved, "AutoApproved", kind.message)
			})
		}
	}
	return reauthorizeInterval, nil
}

// selfApprovalAttributes asks whether the requester may create
// certificatesigningrequests/SUBRESOURCE.
func selfApprovalAttributes(r *certificatesv1.CertificateSigningRequest, subresource string) *authz.Attributes {
	user := &request.User{Username: r.Spec.Username, UID: r.Spec.UID, Groups: r.Spec.Groups, Extra: map[string]authenticationv1.ExtraValue{}}
	for key, values := range r.Spec.Extra {
		user.Extra[key] = authenticationv1.ExtraValue(values)
	}
	return &authz.Attributes{User: user, Info: request.Info{
		Resource: true, Verb: "create", APIGroup: certificatesv1.GroupName, APIVersion: "*",
		ResourceName: core.CertificateSigningRequests.Name, Subresource: subresource,
	}}
}

// certificateSigner signs approved requests to Kubernetes' own signers.
type certificateSigner struct {
	*certificateRequests
	authority *signing.Authority
}

func newCertificateSigner(d *Dependencies) (Loop, error) {
	if d.Signing == nil {
		return runTogether(), nil
	}
	return newCertificateLoop(d, "certificatesigningrequest-signing-controller", func(c *certificateRequests) certificateSync {
		return (&certificateSigner{c, d.Signing}).sync
	})
}

func (s *certificateSigner) sync(ctx context.Context, r *certificatesv1.CertificateSigningRequest) (time.Duration, error) {
	if len(r.Status.Certificate) > 0 || !signing.Knows(r.Spec.SignerName) ||
		findCertificateCondition(r, certificatesv1.CertificateApproved) == nil ||
		findCertificateCondition(r, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed) != nil {
		return 0, nil
	}
	parsed, err := certificatesigningrequest.Parse(r)
	if err == nil {
		err = signing.Check(r.Spec.SignerName, parsed, r.Spec.Usages)
	}
	if err != nil {
		return 0, s.write(ctx, r, "status", func(r *certificatesv1.CertificateSigningRequest) {
			addCertificateCondition(r, certificatesv1.CertificateFailed, "SignerValidationFailure", err.Error())
		})
	}
	certificate, err := s.authority.Sign(parsed, &r.Spec, s.clock.Now())
	if err != nil {
		return 0, err
	}
	return 0, s.write(ctx, r, "status", func(r *certificatesv1.CertificateSigningRequest) { r.Status.Certificate = certificate })
}
