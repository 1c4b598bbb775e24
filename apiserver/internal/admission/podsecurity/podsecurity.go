package podsecurity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "PodSecurity"

// Namespaces finds namespaces; lookup.Objects does.
type Namespaces interface {
	Get(ctx context.Context, namespace, name string) (*core.Namespace, error)
}

// Pods lists existing pods, to check them against a namespace's new level:
// their registry.Resource.
type Pods interface {
	List(ctx context.Context, namespace string, o registry.ListOptions) (registry.List, error)
	Decode(e registry.Encoded) (core.Object, error)
}

// Plugin is the plugin.
type Plugin struct {
	admission.OnWrites
	namespaces        Namespaces
	pods              Pods
	clock             clock.PassiveClock
	evaluator         policy.Evaluator
	defaults          api.Policy
	enforcedByDefault string // in words
	exempt            exemptions
	metrics           *metrics
}

// New returns the configured plugin; its metrics are registered with registry.
func New(namespaces Namespaces, pods Pods, files configuration.Files, registry prometheus.Registerer,
	clock clock.PassiveClock) (*Plugin, error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	p := &Plugin{namespaces: namespaces, pods: pods, clock: clock, evaluator: evaluator}
	if p.metrics, err = newMetrics(registry); err != nil {
		return nil, err
	}
	p.defaults, p.exempt, err = readSettings(files)
	p.enforcedByDefault = p.defaults.Enforce.String()
	return p, err
}

// Validate checks pods, objects with pod templates, and namespaces' labels.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	switch obj := a.Object.(type) {
	case *core.Namespace:
		if a.Subresource != "" {
			return nil
		}
		return p.checkNamespace(ctx, a, obj)
	case *core.Pod:
		// The other subresources don't change what a pod may do.
		if a.Subresource != "" && a.Subresource != "ephemeralcontainers" && a.Subresource != "resize" {
			return nil
		}
		return p.checkPod(ctx, a, true, &obj.ObjectMeta, &obj.Spec)
	}
	if meta, spec := podTemplate(a.Object); spec != nil && a.Subresource == "" {
		return p.checkPod(ctx, a, false, meta, spec)
	}
	return nil
}

// matters reports whether a request can make a pod less secure.
func matters(a *admission.Attributes, pod *core.Pod) bool {
	old, ok := a.OldObject.(*core.Pod)
	if !ok || a.Subresource == "ephemeralcontainers" {
		return true
	}
	same := func(a, b core.Container) bool { return a.Image == b.Image }
	return !slices.EqualFunc(pod.Spec.Containers, old.Spec.Containers, same) ||
		!slices.EqualFunc(pod.Spec.InitContainers, old.Spec.InitContainers, same)
}

// Keys of audit annotations.
const (
	enforcedKey   = api.AuditAnnotationPrefix + "enforce-policy"
	violationsKey = api.AuditAnnotationPrefix + "audit-violations"
	errorKey      = api.AuditAnnotationPrefix + "error"
	exemptKey     = api.AuditAnnotationPrefix + "exempt"
)

// checkPod checks a pod, or a pod template, against its namespace's policy.
// Templates are not refused; pods made from them will be.
func (p *Plugin) checkPod(ctx context.Context, a *admission.Attributes, enforced bool, meta *metav1.ObjectMeta, spec *core.PodSpec) error {
	if why := p.exempt.requester(a); why != "" {
		p.exempted(ctx, a, why)
		return nil
	}
	namespace, err := p.namespaces.Get(ctx, "", a.Namespace)
	if err != nil {
		p.metrics.failed(a, true)
		return err
	}
	asked, inWords := p.defaults, p.enforcedByDefault
	var unreadable error
	if hasPolicyLabels(namespace.Labels) {
		// A label that can't be read counts as restricted: PolicyToEvaluate says so.
		var errs field.ErrorList
		asked, errs = api.PolicyToEvaluate(namespace.Labels, p.defaults)
		unreadable, inWords = errs.ToAggregate(), asked.Enforce.String()
	}
	pod, isPod := a.Object.(*core.Pod)
	switch {
	case unreadable == nil && isPod && asked.FullyPrivileged():
		audit.Annotate(ctx, enforcedKey, privilegedPolicy)
		p.metrics.evaluated(a, enforce, asked.Enforce, true)
		return nil
	case unreadable == nil && !isPod && asked.Audit.Level == api.LevelPrivileged && asked.Warn.Level == api.LevelPrivileged,
		isPod && !matters(a, pod):
		return nil
	}
	if p.exempt.runtimeClass(spec) {
		p.exempted(ctx, a, "runtimeClass")
		return nil
	}
	if unreadable != nil {
		audit.Annotate(ctx, errorKey, fmt.Sprintf("Failed to parse policy: %v", unreadable))
		p.metrics.failed(a, false)
	}
	if enforced {
		audit.Annotate(ctx, enforcedKey, inWords)
	}
	return p.evaluate(ctx, a, asked, enforced, meta, spec)
}

// privilegedPolicy is what pods are held to that need not be looked at.
const privilegedPolicy = string(api.LevelPrivileged) + ":" + api.VersionLatest

func (p *Plugin) exempted(ctx context.Context, a *admission.Attributes, why string) {
	audit.Annotate(ctx, exemptKey, why)
	p.metrics.exempt(a)
}

// evaluate refuses what the policy's levels forbid, warns of it and records it.
func (p *Plugin) evaluate(ctx context.Context, a *admission.Attributes, asked api.Policy, enforced bool, meta *metav1.ObjectMeta,
	spec *core.PodSpec) error {
	results := map[api.LevelVersion]policy.AggregateCheckResult{}
	evaluate := func(level api.LevelVersion) policy.AggregateCheckResult {
		if _, known := results[level]; !known {
			results[level] = policy.AggregateCheckResults(p.evaluator.EvaluatePod(level, meta, spec))
		}
		return results[level]
	}
	if result := evaluate(asked.Audit); !result.Allowed {
		audit.Annotate(ctx, violationsKey, fmt.Sprintf("would violate PodSecurity %q: %s", asked.Audit.String(), result.ForbiddenDetail()))
		p.metrics.evaluated(a, auditing, asked.Audit, false)
	}
	if enforced {
		result := evaluate(asked.Enforce)
		p.metrics.evaluated(a, enforce, asked.Enforce, result.Allowed)
		if !result.Allowed {
			return fmt.Errorf("violates PodSecurity %q: %s", asked.Enforce.String(), result.ForbiddenDetail())
		}
	}
	if result := evaluate(asked.Warn); !result.Allowed {
		request.Warn(ctx, fmt.Sprintf("would violate PodSecurity %q: %s", asked.Warn.String(), result.ForbiddenDetail()))
		p.metrics.evaluated(a, warn, asked.Warn, false)
	}
	return nil
}

// checkNamespace checks the labels, and warns about existing pods that would no
// longer be admitted.
func (p *Plugin) checkNamespace(ctx context.Context, a *admission.Attributes, namespace *core.Namespace) error {
	asked, errs := api.PolicyToEvaluate(namespace.Labels, p.defaults)
	old, isUpdate := a.OldObject.(*core.Namespace)
	if !isUpdate {
		if len(errs) > 0 {
			return apierrors.NewInvalid(core.Namespaces.GVK().GroupKind(), namespace.Name, errs)
		}
		if p.exempt.namespaces.Has(namespace.Name) {
			p.warnOfExemption(ctx, namespace, asked)
		}
		return nil
	}
	before, oldErrs := api.PolicyToEvaluate(old.Labels, p.defaults)
	if len(errs) > 0 {
		// Labels from before the plugin was enabled must not prevent other changes.
		if len(oldErrs) > 0 && errs.ToAggregate().Error() == oldErrs.ToAggregate().Error() {
			return nil
		}
		return apierrors.NewInvalid(core.Namespaces.GVK().GroupKind(), namespace.Name, errs)
	}
	stricter := asked.Enforce.Version != before.Enforce.Version || api.CompareLevels(asked.Enforce.Level, before.Enforce.Level) > 0
	if !stricter || asked.Enforce.Level == api.LevelPrivileged {
		return nil
	}
	if p.exempt.namespaces.Has(namespace.Name) {
		p.warnOfExemption(ctx, namespace, asked)
		return nil
	}
	p.warnOfPods(ctx, namespace.Name, asked.Enforce)
	return nil
}

// warnOfExemption warns of the labels of an exempt namespace, if they ask for anything.
func (p *Plugin) warnOfExemption(ctx context.Context, namespace *core.Namespace, asked api.Policy) {
	if !asked.FullyPrivileged() && !asked.Equivalent(&p.defaults) {
		request.Warn(ctx, fmt.Sprintf("namespace %q is exempt from Pod Security, and the policy (%s) will be ignored",
			namespace.Name, policyOfLabels(namespace.Labels, asked)))
	}
}

// policyOfLabels is the policy that the labels themselves name, without what allows
// everything.
func policyOfLabels(labels map[string]string, asked api.Policy) string {
	var parts []string
	for _, mode := range []struct {
		label string
		level api.LevelVersion
	}{{"enforce", asked.Enforce}, {"audit", asked.Audit}, {"warn", asked.Warn}} {
		_, level := labels[api.AuditAnnotationPrefix+mode.label]
		_, version := labels[api.AuditAnnotationPrefix+mode.label+"-version"]
		if mode.level.Level != api.LevelPrivileged && (level || version) {
			parts = append(parts, mode.label+"="+mode.level.String())
		}
	}
	return strings.Join(parts, ", ")
}
