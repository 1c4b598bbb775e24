package certificatesigningrequest

import (
	"context"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Approval is the subresource through which a request is approved or denied.
const Approval = "approval"

// Served are the requests for certificates.
func Served(o registry.Options) []registry.Served {
	return registry.Serve(registry.NewStore(strategy(o.Clock), o))
}

// strategy is the strategy of requests for certificates.
func strategy(clock clock.PassiveClock) registry.Strategy[*certificatesv1.CertificateSigningRequest] {
	return registry.Strategy[*certificatesv1.CertificateSigningRequest]{
		Resource: core.CertificateSigningRequests, Singular: "certificatesigningrequest", ShortNames: []string{"csr"},
		New: func() *certificatesv1.CertificateSigningRequest { return new(certificatesv1.CertificateSigningRequest) },
		Create: registry.CreateStrategy[*certificatesv1.CertificateSigningRequest]{
			Prepare:      setRequester,
			ValidateName: check.NameIsSegment,
			Validate: func(_ context.Context, r *certificatesv1.CertificateSigningRequest) field.ErrorList {
				return validate(r)
			},
		},
		Update: registry.UpdateStrategy[*certificatesv1.CertificateSigningRequest]{
			AllowUnconditional: true,
			ResetFields:        []string{"spec"}, // which has no owner: it can't be changed
			Prepare: func(_ context.Context, r, old *certificatesv1.CertificateSigningRequest) {
				r.Spec, r.Status = old.Spec, old.Status
			},
		},
		Status: &registry.UpdateStrategy[*certificatesv1.CertificateSigningRequest]{
			ResetFields: []string{"status.conditions"},
			Prepare: func(_ context.Context, r, old *certificatesv1.CertificateSigningRequest) {
				r.Spec = old.Spec
				keepDecisions(r, old)
				setTimes(r, old, metav1.NewTime(clock.Now()))
			},
			Validate: validateStatus,
		},
		Subresources: map[string]registry.UpdateStrategy[*certificatesv1.CertificateSigningRequest]{
			Approval: {
				ResetFields: []string{"spec", "status.certificate"},
				Prepare: func(_ context.Context, r, old *certificatesv1.CertificateSigningRequest) {
					r.Spec, r.Status.Certificate = old.Spec, old.Status.Certificate
					setTimes(r, old, metav1.NewTime(clock.Now()))
				},
				Validate: validateApproval,
			},
		},
		Read: registry.ReadStrategy[*certificatesv1.CertificateSigningRequest]{
			Fields: func(r *certificatesv1.CertificateSigningRequest) fields.Set {
				return fields.Set{"spec.signerName": r.Spec.SignerName}
			},
			Columns: columns(),
			Row:     func(r *certificatesv1.CertificateSigningRequest) []any { return row(r, clock.Now()) },
		},
	}
}

// setRequester sets the requester, whatever the object says. The server's own
// loops have no user.
func setRequester(ctx context.Context, r *certificatesv1.CertificateSigningRequest) {
	r.Status = certificatesv1.CertificateSigningRequestStatus{}
	r.Spec.Username, r.Spec.UID, r.Spec.Groups, r.Spec.Extra = "", "", nil, nil
	user := request.UserFrom(ctx)
	if user == nil {
		return
	}
	r.Spec.Username, r.Spec.UID, r.Spec.Groups = user.Username, user.UID, user.Groups
	for key, values := range user.Extra {
		if r.Spec.Extra == nil {
			r.Spec.Extra = map[string]certificatesv1.ExtraValue{}
		}
		r.Spec.Extra[key] = certificatesv1.ExtraValue(values)
	}
}

// keepDecisions restores approvals and denials: /status can't change them.
func keepDecisions(r, old *certificatesv1.CertificateSigningRequest) {
	for i := range r.Status.Conditions {
		c := &r.Status.Conditions[i]
		if !isDecision(c.Type) {
			continue
		}
		if before := findCondition(old, c.Type); before != nil {
			*c = *before
		}
	}
}

func isDecision(t certificatesv1.RequestConditionType) bool {
	return t == certificatesv1.CertificateApproved || t == certificatesv1.CertificateDenied
}

// findCondition returns the request's condition of a type, or nil.
func findCondition(r *certificatesv1.CertificateSigningRequest,
	t certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	for i := range r.Status.Conditions {
		if r.Status.Conditions[i].Type == t {
			return &r.Status.Conditions[i]
		}
	}
	return nil
}

// setTimes fills in times that the client omitted.
func setTimes(r, old *certificatesv1.CertificateSigningRequest, now metav1.Time) {
	for i := range r.Status.Conditions {
		c := &r.Status.Conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = now
		}
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = now
		if before := findCondition(old, c.Type); before != nil && before.Status == c.Status && !before.LastTransitionTime.IsZero() {
			c.LastTransitionTime = before.LastTransitionTime
		}
	}
}

// signerText describes a column in upstream's words from before v1.
const signerText = "Requested signer for the request. It is a qualified name in the form: `scope-hostname.io/name`. If " +
	"empty, it will be defaulted:\n" +
	" 1. If it's a kubelet client certificate, it is assigned\n    \"kubernetes.io/kube-apiserver-client-kubelet\".\n" +
	" 2. If it's a kubelet serving certificate, it is assigned\n    \"kubernetes.io/kubelet-serving\".\n" +
	" 3. Otherwise, it is assigned \"kubernetes.io/legacy-unknown\".\n" +
	"Distribution of trust for signers happens out of band. You can select on this field using `spec.signerName`."

func columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		cell.Name(), cell.AgeColumn(),
		cell.Text("SignerName", signerText),
		cell.Text("Requestor", "Base64-encoded PKCS#10 CSR data"),
		cell.Text("RequestedDuration", certificatesv1.CertificateSigningRequestSpec{}.SwaggerDoc()["expirationSeconds"]),
		cell.Text("Condition", "Conditions applied to the request, such as approval or denial."),
	}
}

func row(r *certificatesv1.CertificateSigningRequest, now time.Time) []any {
	asked := cell.None
	if seconds := r.Spec.ExpirationSeconds; seconds != nil {
		asked = duration.HumanDuration(time.Duration(*seconds) * time.Second)
	}
	return []any{r.Name, cell.Age(now, r.CreationTimestamp), r.Spec.SignerName, r.Spec.Username, asked, conditionText(r)}
}

// conditionText is the request's state, in a word or two.
func conditionText(r *certificatesv1.CertificateSigningRequest) string {
	text := "Pending"
	switch {
	case findCondition(r, certificatesv1.CertificateDenied) != nil:
		text = "Denied"
	case findCondition(r, certificatesv1.CertificateApproved) != nil:
		text = "Approved"
	}
	if findCondition(r, certificatesv1.CertificateFailed) != nil {
		text += ",Failed"
	}
	if len(r.Status.Certificate) > 0 {
		text += ",Issued"
	}
	return text
}
