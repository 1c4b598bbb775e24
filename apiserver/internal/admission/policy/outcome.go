package policy

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/audit"
)

// maxAnnotation bounds the value of an audit annotation (ValidatingAdmissionPolicy,
// auditAnnotations.valueExpression).
const maxAnnotation = 10 << 10

// maxFailures bounds the failures in the audit event; upstream's.
const maxFailures = 50

// failuresKey is upstream's.
const failuresKey = "validation.policy.admission.k8s.io/validation_failure"

// outcome is the result of all validating policies for a request.
type outcome struct {
	a *admission.Attributes
	// refusal is the first; nil for none.
	refusal     error
	failures    []failureRecord
	annotations map[string][]string
}

// failureRecord is a failed validation in the form of the audit event.
type failureRecord struct {
	Message string                                     `json:"message"`
	Policy  string                                     `json:"policy"`
	Binding string                                     `json:"binding"`
	Index   int                                        `json:"expressionIndex"`
	Actions []admissionregistrationv1.ValidationAction `json:"validationActions"`
}

func (o *outcome) deny(policy, binding, message string, reason metav1.StatusReason) {
	if o.refusal == nil {
		told := deniedMessage(policy, binding, message)
		o.refusal = refusalError(o.a, codes[reason], reason, forbiddenMessage(o.a, told), told)
	}
}

// annotate adds a value to those that other bindings have for the key.
func (o *outcome) annotate(key, value string) {
	value = strings.TrimSpace(value)
	if value == "" {
		return
	}
	if len(value) > maxAnnotation {
		value = strings.ToValidUTF8(value[:maxAnnotation], "")
	}
	if o.annotations == nil {
		o.annotations = map[string][]string{}
	}
	if !slices.Contains(o.annotations[key], value) {
		o.annotations[key] = append(o.annotations[key], value)
	}
}

// publish writes the audit annotations.
func (o *outcome) publish(ctx context.Context) {
	for key, values := range o.annotations {
		audit.Annotate(ctx, key, strings.Join(values, ", "))
	}
	if len(o.failures) == 0 {
		return
	}
	if text, err := json.Marshal(o.failures); err == nil { // it is made of strings and numbers
		audit.Annotate(ctx, failuresKey, string(text))
	}
}
