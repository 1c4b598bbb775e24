package policy

import (
	"fmt"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/celexpression"
	"kctl/proto/core"
)

// policy is a stored policy, ready to be evaluated.
type policy struct {
	name      string
	failOpen  bool
	reinvoke  bool
	paramKind *schema.GroupVersionKind // nil for none
	criteria  *match.Criteria
	// configError is why it can't be evaluated.
	configError error
	programs    func() (*programs, error)
}

// binding says where a policy applies, with which parameters, and with which
// actions.
type binding struct {
	name, policy string
	criteria     *match.Criteria
	configError  error
	ref          *admissionregistrationv1.ParamRef
	selector     labels.Selector // of parameters; nil if one is named
	actions      []admissionregistrationv1.ValidationAction
}

func (b *binding) hasAction(action admissionregistrationv1.ValidationAction) bool {
	return slices.Contains(b.actions, action)
}

// programs are a policy's expressions, compiled.
type programs struct {
	conditions  *condition.Conditions
	variables   []condition.Variable
	validations []validation
	annotations []annotation
	mutations   []mutation
}

type validation struct {
	condition.Expression
	message    string
	expression *condition.Expression // of the message; nil for none
	reason     metav1.StatusReason
}

type annotation struct {
	key string
	condition.Expression
}

type mutation struct {
	kind admissionregistrationv1.PatchType
	condition.Expression
}

// commonSpec are the fields that both kinds of policies have.
type commonSpec struct {
	paramKind  *admissionregistrationv1.ParamKind
	match      *admissionregistrationv1.MatchResources
	failure    *admissionregistrationv1.FailurePolicyType
	conditions []admissionregistrationv1.MatchCondition
	variables  []admissionregistrationv1.Variable
}

func ofValidating(obj core.Object) *policy {
	spec := &obj.(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec
	fields := commonSpec{spec.ParamKind, spec.MatchConstraints, spec.FailurePolicy, spec.MatchConditions, spec.Variables}
	return newPolicy(obj.GetName(), fields, false, func(c *condition.Compiler, p *programs) {
		for _, v := range spec.Validations {
			made := validation{Expression: c.Expression(v.Expression, cel.BoolType), message: v.Message, reason: metav1.StatusReasonInvalid}
			if v.MessageExpression != "" {
				message := c.Message(v.MessageExpression)
				made.expression = &message
			}
			if v.Reason != nil {
				made.reason = *v.Reason
			}
			p.validations = append(p.validations, made)
		}
		for _, a := range spec.AuditAnnotations {
			p.annotations = append(p.annotations, annotation{a.Key, c.Expression(a.ValueExpression, cel.StringType, cel.NullType)})
		}
	})
}

func ofMutating(obj core.Object) *policy {
	spec := &obj.(*admissionregistrationv1.MutatingAdmissionPolicy).Spec
	fields := commonSpec{spec.ParamKind, spec.MatchConstraints, spec.FailurePolicy, spec.MatchConditions, spec.Variables}
	made := newPolicy(obj.GetName(), fields, true, func(c *condition.Compiler, p *programs) {
		for _, m := range spec.Mutations {
			switch {
			case m.JSONPatch != nil:
				p.mutations = append(p.mutations, mutation{m.PatchType, c.Mutation(m.JSONPatch.Expression, condition.PatchesType)})
			case m.ApplyConfiguration != nil:
				p.mutations = append(p.mutations, mutation{m.PatchType, c.Mutation(m.ApplyConfiguration.Expression, condition.ObjectType)})
			}
		}
	})
	made.reinvoke = spec.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy
	return made
}

func newPolicy(name string, c commonSpec, mutations bool, compile func(*condition.Compiler, *programs)) *policy {
	p := &policy{name: name, failOpen: ptr.Deref(c.failure, "") == admissionregistrationv1.Ignore}
	p.criteria, p.configError = match.Of(c.match)
	if c.paramKind != nil {
		version, err := schema.ParseGroupVersion(c.paramKind.APIVersion)
		if err != nil {
			p.configError = fmt.Errorf("failed to parse paramKind: %w", err)
		}
		kind := version.WithKind(c.paramKind.Kind)
		p.paramKind = &kind
	}
	// Compiled at first use: on most servers, most policies are never evaluated.
	p.programs = sync.OnceValues(func() (*programs, error) {
		compiler, err := condition.NewCompiler(condition.Options{
			Origin: celexpression.Stored, Params: c.paramKind != nil, Variables: true, Mutations: mutations,
		})
		if err != nil {
			return nil, err
		}
		out := &programs{conditions: condition.Compile(c.conditions, compiler)}
		for _, v := range c.variables {
			out.variables = append(out.variables, compiler.Variable(v.Name, v.Expression))
		}
		compile(compiler, out)
		return out, nil
	})
	return p
}

func ofValidatingBinding(obj core.Object) *binding {
	spec := &obj.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding).Spec
	b := newBinding(obj.GetName(), spec.PolicyName, spec.ParamRef, spec.MatchResources)
	b.actions = spec.ValidationActions
	return b
}

func ofMutatingBinding(obj core.Object) *binding {
	spec := &obj.(*admissionregistrationv1.MutatingAdmissionPolicyBinding).Spec
	return newBinding(obj.GetName(), spec.PolicyName, spec.ParamRef, spec.MatchResources)
}

func newBinding(name, policy string, ref *admissionregistrationv1.ParamRef, resources *admissionregistrationv1.MatchResources) *binding {
	b := &binding{name: name, policy: policy, ref: ref}
	b.criteria, b.configError = match.Of(resources)
	if ref != nil && ref.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
		if err != nil {
			b.configError = fmt.Errorf("paramRef.selector: %w", err)
		}
		b.selector = selector
	}
	return b
}
