package admissionregistration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	defaultPort    = 443
	defaultTimeout = 10
)

// fill sets a default if the field is not set.
func fill[T any](field **T, value T) {
	if *field == nil {
		*field = new(value)
	}
}

func defaultFailurePolicy(p **admissionregistrationv1.FailurePolicyType) {
	fill(p, admissionregistrationv1.Fail)
}

func defaultValidating(w *admissionregistrationv1.ValidatingWebhook) {
	defaultFailurePolicy(&w.FailurePolicy)
	fill(&w.MatchPolicy, admissionregistrationv1.Equivalent)
	fill(&w.NamespaceSelector, metav1.LabelSelector{})
	fill(&w.ObjectSelector, metav1.LabelSelector{})
	fill(&w.TimeoutSeconds, defaultTimeout)
	defaultService(w.ClientConfig.Service)
	defaultRules(w.Rules)
}

func defaultMutating(w *admissionregistrationv1.MutatingWebhook) {
	defaultFailurePolicy(&w.FailurePolicy)
	fill(&w.MatchPolicy, admissionregistrationv1.Equivalent)
	fill(&w.NamespaceSelector, metav1.LabelSelector{})
	fill(&w.ObjectSelector, metav1.LabelSelector{})
	fill(&w.TimeoutSeconds, defaultTimeout)
	fill(&w.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
	defaultService(w.ClientConfig.Service)
	defaultRules(w.Rules)
}

func defaultService(s *admissionregistrationv1.ServiceReference) {
	if s != nil {
		fill(&s.Port, defaultPort)
	}
}

func defaultRules(rules []admissionregistrationv1.RuleWithOperations) {
	for i := range rules {
		fill(&rules[i].Scope, admissionregistrationv1.AllScopes)
	}
}

func defaultMatch(m *admissionregistrationv1.MatchResources) {
	if m == nil {
		return
	}
	fill(&m.MatchPolicy, admissionregistrationv1.Equivalent)
	fill(&m.NamespaceSelector, metav1.LabelSelector{})
	fill(&m.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]admissionregistrationv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			fill(&rules[i].Scope, admissionregistrationv1.AllScopes)
		}
	}
}
