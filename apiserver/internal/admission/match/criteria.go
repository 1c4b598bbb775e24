package match

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

// Cluster is what matching needs from the server.
type Cluster struct {
	// Namespace returns a namespace as it is now.
	Namespace func(ctx context.Context, name string) (*core.Namespace, error)
	// Versions may be nil: then every resource has one form.
	Versions Versions
}

// Versions knows the other forms in which the objects of a resource are served:
// another version, or another group.
type Versions interface {
	Equivalent(r core.Resource) []core.Resource
	Convert(ctx context.Context, obj core.Object, to core.Resource) (core.Object, error)
}

// Target is what a request is about, in the form that a rule names.
type Target struct {
	core.Resource // whose Kind is that of the object in the request
	Subresource   string
	// Converted: the form is not the request's.
	Converted bool
}

// Kind is the kind of object that the target's webhook or policy sees.
func (t Target) Kind(a *admission.Attributes) schema.GroupVersionKind {
	if kind := a.Kind(); kind != a.Resource.GVK() {
		return kind // a subresource's own: it is the same in every version
	}
	return t.GVK()
}

// Criteria select requests. They are safe for concurrent use.
type Criteria struct {
	rules, except []admissionregistrationv1.NamedRuleWithOperations
	everything    bool // without rules
	exact         bool
	namespaces    labels.Selector
	objects       labels.Selector
}

// OfHook returns the criteria of a webhook, which selects nothing without rules.
func OfHook(rules []admissionregistrationv1.RuleWithOperations, policy *admissionregistrationv1.MatchPolicyType,
	namespaces, objects *metav1.LabelSelector) (*Criteria, error) {
	resources := admissionregistrationv1.MatchResources{MatchPolicy: policy, NamespaceSelector: namespaces, ObjectSelector: objects}
	for _, rule := range rules {
		resources.ResourceRules = append(resources.ResourceRules, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: rule})
	}
	c, err := Of(&resources)
	if err != nil {
		return nil, err
	}
	c.everything = false
	return c, nil
}

// Of returns the criteria of a policy or a binding, which selects everything without
// rules.
func Of(r *admissionregistrationv1.MatchResources) (*Criteria, error) {
	c := &Criteria{everything: true, namespaces: labels.Everything(), objects: labels.Everything()}
	if r == nil {
		return c, nil
	}
	c.rules, c.except = r.ResourceRules, r.ExcludeResourceRules
	c.everything = len(c.rules) == 0
	c.exact = ptr.Deref(r.MatchPolicy, "") == admissionregistrationv1.Exact
	var err error
	if c.namespaces, err = selector(r.NamespaceSelector); err != nil {
		return nil, fmt.Errorf("namespaceSelector: %w", err)
	}
	if c.objects, err = selector(r.ObjectSelector); err != nil {
		return nil, fmt.Errorf("objectSelector: %w", err)
	}
	return c, nil
}

// selector selects everything if s is nil.
func selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// NeverMatched are reviews of users' identity and rights, which no webhook or policy
// may see or delay, whatever the rules: its own backend may need one before it
// can answer (kube-apiserver v1.37.0 sends none of them to a webhook).
var NeverMatched = sets.New(
	schema.GroupResource{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	schema.GroupResource{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	schema.GroupResource{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
	schema.GroupResource{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	schema.GroupResource{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	schema.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
)

// Match reports whether a is selected, and as which target.
func (c *Criteria) Match(ctx context.Context, a *admission.Attributes, in Cluster) (Target, bool, error) {
	if NeverMatched.Has(a.Resource.GVR().GroupResource()) {
		return Target{}, false, nil
	}
	target, ok := c.target(a, in.Versions)
	if !ok || !c.selectsObject(a) {
		return Target{}, false, nil
	}
	if ok, err := c.selectsNamespace(ctx, a, in); err != nil || !ok {
		return Target{}, false, err
	}
	return target, true, nil
}

// target finds the form of the resource that a rule names, preferring the
// request's own.
func (c *Criteria) target(a *admission.Attributes, versions Versions) (Target, bool) {
	own := Target{Resource: a.Resource, Subresource: a.Subresource}
	if _, excepted := c.find(c.except, a, own, versions); excepted {
		return Target{}, false
	}
	if c.everything {
		return own, true
	}
	return c.find(c.rules, a, own, versions)
}

func (c *Criteria) find(rules []admissionregistrationv1.NamedRuleWithOperations, a *admission.Attributes, own Target,
	versions Versions) (Target, bool) {
	if len(rules) == 0 {
		return Target{}, false
	}
	if matchesAny(rules, a, own) {
		return own, true
	}
	if c.exact || versions == nil {
		return Target{}, false
	}
	for _, other := range versions.Equivalent(a.Resource) {
		t := Target{Resource: other, Subresource: a.Subresource, Converted: true}
		if matchesAny(rules, a, t) {
			return t, true
		}
	}
	return Target{}, false
}

// selectsObject checks the new and the old object; either suffices. An object
// without labels is selected only by a selector that selects everything.
func (c *Criteria) selectsObject(a *admission.Attributes) bool {
	if c.objects.Empty() {
		return true
	}
	return a.Object != nil && c.objects.Matches(labels.Set(a.Object.GetLabels())) ||
		a.OldObject != nil && c.objects.Matches(labels.Set(a.OldObject.GetLabels()))
}

// selectsNamespace checks the object's namespace, or the object itself if it is
// a namespace; for a subresource of a namespace, the stored one. Other
// cluster-scoped objects are always selected.
func (c *Criteria) selectsNamespace(ctx context.Context, a *admission.Attributes, in Cluster) (bool, error) {
	if c.namespaces.Empty() {
		return true, nil
	}
	if isNamespace(a.Resource) && a.Subresource == "" {
		switch {
		case a.Object != nil:
			return c.namespaces.Matches(labels.Set(a.Object.GetLabels())), nil
		case a.OldObject != nil:
			return c.namespaces.Matches(labels.Set(a.OldObject.GetLabels())), nil
		}
	}
	name := NamespaceOf(a)
	if name == "" {
		return true, nil
	}
	namespace, err := in.Namespace(ctx, name)
	if err != nil {
		return false, err
	}
	return c.namespaces.Matches(labels.Set(namespace.Labels)), nil
}

// isNamespace reports whether r is the resource of namespaces.
func isNamespace(r core.Resource) bool { return r.Name == core.Namespaces.Name && r.Group == "" }

func matchesAny(rules []admissionregistrationv1.NamedRuleWithOperations, a *admission.Attributes, t Target) bool {
	return slices.ContainsFunc(rules, func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
		return ruleMatches(&rule, a, t)
	})
}
