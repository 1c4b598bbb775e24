package admissionregistration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

var (
	reviewVersions = []string{"v1", "v1beta1"}
	sideEffects    = []admissionregistrationv1.SideEffectClass{admissionregistrationv1.SideEffectClassNone,
		admissionregistrationv1.SideEffectClassNoneOnDryRun}
	reinvocations = []admissionregistrationv1.ReinvocationPolicyType{admissionregistrationv1.IfNeededReinvocationPolicy,
		admissionregistrationv1.NeverReinvocationPolicy}
	maxTimeout = int32(30)
)

// webhook are the checked fields of a webhook of either kind.
type webhook struct {
	admissionregistrationv1.ValidatingWebhook
	reinvocation *admissionregistrationv1.ReinvocationPolicyType
}

func fromValidating(webhooks []admissionregistrationv1.ValidatingWebhook) []webhook {
	out := make([]webhook, 0, len(webhooks))
	for _, w := range webhooks {
		out = append(out, webhook{ValidatingWebhook: w})
	}
	return out
}

func fromMutating(webhooks []admissionregistrationv1.MutatingWebhook) []webhook {
	out := make([]webhook, 0, len(webhooks))
	for _, w := range webhooks {
		out = append(out, webhook{admissionregistrationv1.ValidatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
			TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
		}, w.ReinvocationPolicy})
	}
	return out
}

func validateWebhooks(webhooks []webhook, known storedExpressions) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i := range webhooks {
		w, at := &webhooks[i], field.NewPath("webhooks").Index(i)
		errs = append(errs, validateWebhook(w, known, at)...)
		errs = append(errs, validateVersions(w.AdmissionReviewVersions, at.Child("admissionReviewVersions"))...)
		if w.Name == "" {
			continue
		}
		if names[w.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), w.Name))
		}
		names[w.Name] = true
	}
	return errs
}

func validateWebhook(w *webhook, known storedExpressions, at *field.Path) field.ErrorList {
	errs := validation.IsFullyQualifiedName(at.Child("name").Upstream(), w.Name)
	for i := range w.Rules {
		errs = append(errs, validateRule(&w.Rules[i], at.Child("rules").Index(i))...)
	}
	errs = append(errs, supportedIfSet(w.FailurePolicy, at.Child("failurePolicy"), failurePolicies)...)
	errs = append(errs, supportedIfSet(w.MatchPolicy, at.Child("matchPolicy"), matchPolicies)...)
	if w.SideEffects == nil {
		errs = append(errs, field.Required(at.Child("sideEffects"), "must specify one of None, NoneOnDryRun"))
	}
	errs = append(errs, supportedIfSet(w.SideEffects, at.Child("sideEffects"), sideEffects)...)
	if w.TimeoutSeconds != nil && (*w.TimeoutSeconds < 1 || *w.TimeoutSeconds > maxTimeout) {
		errs = append(errs, field.Invalid(at.Child("timeoutSeconds"), *w.TimeoutSeconds,
			fmt.Sprintf("the timeout value must be between 1 and %d seconds", maxTimeout)))
	}
	errs = append(errs, check.LabelSelector(w.NamespaceSelector, at.Child("namespaceSelector"))...)
	errs = append(errs, check.LabelSelector(w.ObjectSelector, at.Child("objectSelector"))...)
	errs = append(errs, supportedIfSet(w.reinvocation, at.Child("reinvocationPolicy"), reinvocations)...)
	errs = append(errs, validateClient(&w.ClientConfig, at.Child("clientConfig"))...)
	return append(errs, validateMatchConditions(w.MatchConditions, &compilers{stored: known}, at.Child("matchConditions"))...)
}

func validateVersions(versions []string, at *field.Path) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(at, "must specify one of "+strings.Join(reviewVersions, ", "))}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, version := range versions {
		if seen[version] {
			errs = append(errs, field.Invalid(at.Index(i), version, "duplicate version"))
			continue
		}
		seen[version] = true
		errs = append(errs, check.Messages(at.Index(i), version, validation.IsDNS1035Label(version))...)
	}
	if !slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(reviewVersions, v) }) {
		errs = append(errs, field.Invalid(at, versions, "must include at least one of "+strings.Join(reviewVersions, ", ")))
	}
	return errs
}

func validateClient(c *admissionregistrationv1.WebhookClientConfig, at *field.Path) field.ErrorList {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		return field.ErrorList{field.Required(at, "exactly one of url or service is required")}
	case c.URL != nil:
		return check.WebhookURL(*c.URL, at.Child("url"))
	}
	return check.WebhookService(c.Service.Namespace, c.Service.Name, c.Service.Port, c.Service.Path, at.Child("service"))
}
