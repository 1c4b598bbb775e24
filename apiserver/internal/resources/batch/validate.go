package batch

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/pod"
	"kctl/proto/core"
)

const (
	// maxParallelism bounds the pods of indexed jobs.
	maxParallelism   = 100_000
	maxFailedIndexes = 100_000
	// Jobs with more than manyCompletions completions and a back-off limit per
	// index are limited to maxParallelismOfMany parallel pods, and failures.
	manyCompletions      = 100_000
	maxParallelismOfMany = 10_000
	// maxRules bounds the rules of a policy, and the conditions of a rule.
	maxRules     = 20
	maxExitCodes = 255
)

// validateManualSelector checks that a job with a generated selector does not also
// specify one.
func validateManualSelector(j *batchv1.Job) field.ErrorList {
	var errs field.ErrorList
	s := &j.Spec
	if ptr.Deref(s.ManualSelector, false) || s.Selector == nil {
		return nil
	}
	labelled := specPath.Child("template", "metadata", "labels")
	for _, want := range []struct{ key, value string }{
		{oldUIDLabel, string(j.UID)}, {oldNameLabel, j.Name}, {batchv1.ControllerUidLabel, string(j.UID)}, {batchv1.JobNameLabel, j.Name},
	} {
		switch got, ok := s.Template.Labels[want.key]; {
		case !ok:
			errs = append(errs, field.Required(labelled.Key(want.key), "must be '"+want.value+"'"))
		case got != want.value:
			errs = append(errs, field.Invalid(labelled.Key(want.key), s.Template.Labels, "must be '"+want.value+"'"))
		}
	}
	own := metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(j.UID)}}
	if !equality.Semantic.DeepEqual(*s.Selector, own) {
		errs = append(errs, field.Invalid(specPath.Child("selector"), s.Selector, "`selector` not auto-generated"))
	}
	return errs
}

// validateJob validates the spec of a job; that of a cron job's template has no selector.
func validateJob(s *batchv1.JobSpec, at *field.Path) field.ErrorList {
	errs := validateNumbers(s, at)
	if s.Selector == nil {
		errs = append(errs, field.Required(at.Child("selector"), ""))
	} else {
		errs = append(errs, check.LabelSelector(s.Selector, at.Child("selector"))...)
	}
	if chosen, err := metav1.LabelSelectorAsSelector(s.Selector); err == nil && !chosen.Matches(labels.Set(s.Template.Labels)) {
		errs = append(errs, field.Invalid(at.Child("template", "metadata", "labels"), s.Template.Labels,
			"`selector` does not match template `labels`"))
	}
	return append(errs, validateTemplate(s, at)...)
}

// validateNumbers validates a job's numbers of pods and retries.
func validateNumbers(s *batchv1.JobSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	number := func(name string, value *int32) {
		if value != nil {
			errs = append(errs, check.Nonnegative(int64(*value), at.Child(name))...)
		}
	}
	number("parallelism", s.Parallelism)
	number("completions", s.Completions)
	if s.ActiveDeadlineSeconds != nil {
		errs = append(errs, check.Nonnegative(*s.ActiveDeadlineSeconds, at.Child("activeDeadlineSeconds"))...)
	}
	number("backoffLimit", s.BackoffLimit)
	number("ttlSecondsAfterFinished", s.TTLSecondsAfterFinished)
	number("backoffLimitPerIndex", s.BackoffLimitPerIndex)
	number("maxFailedIndexes", s.MaxFailedIndexes)
	if s.ManagedBy != nil {
		errs = append(errs, validateManager(*s.ManagedBy, at.Child("managedBy"))...)
	}
	return append(errs, validateCompletionMode(s, at)...)
}

func validateManager(name string, at *field.Path) field.ErrorList {
	errs := validation.IsDomainPrefixedPath(at.Upstream(), name)
	if len(name) > 63 {
		errs = append(errs, field.TooLong(at, name, 63))
	}
	return errs
}

func validateCompletionMode(s *batchv1.JobSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	indexed := ptr.Deref(s.CompletionMode, "") == batchv1.IndexedCompletion
	mode := ptr.Deref(s.CompletionMode, batchv1.NonIndexedCompletion)
	if mode != batchv1.NonIndexedCompletion && !indexed {
		errs = append(errs, field.NotSupported(at.Child("completionMode"), mode,
			[]batchv1.CompletionMode{batchv1.NonIndexedCompletion, batchv1.IndexedCompletion}))
	}
	if indexed {
		if s.Completions == nil {
			errs = append(errs, field.Required(at.Child("completions"), "when completion mode is Indexed"))
		}
		if n := ptr.Deref(s.Parallelism, 0); n > maxParallelism {
			errs = append(errs, field.Invalid(at.Child("parallelism"), n, check.LessThanOrEqual(maxParallelism)+" when completion mode is Indexed"))
		}
	}
	errs = append(errs, validateFailedIndexes(s, mode != batchv1.NonIndexedCompletion, at)...)
	policies := []batchv1.PodReplacementPolicy{batchv1.Failed, batchv1.TerminatingOrFailed}
	if s.PodFailurePolicy != nil {
		errs = append(errs, validateFailurePolicy(s, at)...)
		policies = policies[:1]
	}
	errs = append(errs, validateSuccessPolicy(s, indexed, at)...)
	if s.PodReplacementPolicy == nil { // of a cron job: its jobs get a default
		return errs
	}
	return append(errs, check.Supported(*s.PodReplacementPolicy, at.Child("podReplacementPolicy"), policies...)...)
}

// validateFailedIndexes validates the limits of jobs with a back-off limit per index.
func validateFailedIndexes(s *batchv1.JobSpec, indexed bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	failed := at.Child("maxFailedIndexes")
	if s.BackoffLimitPerIndex != nil && !indexed {
		errs = append(errs, field.Invalid(at.Child("backoffLimitPerIndex"), *s.BackoffLimitPerIndex, "requires indexed completion mode"))
	}
	if most := s.MaxFailedIndexes; most != nil {
		if s.BackoffLimitPerIndex == nil {
			errs = append(errs, field.Required(at.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
		}
		if !indexed {
			errs = append(errs, field.Invalid(failed, *most, "requires indexed completion mode"))
		}
		if s.Completions != nil && *most > *s.Completions {
			errs = append(errs, field.Invalid(failed, *most, "must be less than or equal to completions"))
		}
		if *most > maxFailedIndexes {
			errs = append(errs, field.Invalid(failed, *most, check.LessThanOrEqual(maxFailedIndexes)))
		}
	}
	if !indexed || s.BackoffLimitPerIndex == nil || ptr.Deref(s.Completions, 0) <= manyCompletions {
		return errs
	}
	bound := check.LessThanOrEqual(maxParallelismOfMany) + " when completions are above 100000 and used with backoff limit per index"
	if n := ptr.Deref(s.Parallelism, 0); n > maxParallelismOfMany {
		errs = append(errs, field.Invalid(at.Child("parallelism"), n, bound))
	}
	if s.MaxFailedIndexes == nil {
		return append(errs, field.Required(failed, "must be specified when completions is above 100000"))
	}
	if *s.MaxFailedIndexes > maxParallelismOfMany {
		errs = append(errs, field.Invalid(failed, *s.MaxFailedIndexes, bound))
	}
	return errs
}

// validateFailurePolicy validates how a job handles failed pods.
func validateFailurePolicy(s *batchv1.JobSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for c := range core.Containers(&s.Template.Spec) {
		names[c.Name] = true
	}
	rules := at.Child("podFailurePolicy", "rules")
	if n := len(s.PodFailurePolicy.Rules); n > maxRules {
		errs = append(errs, field.TooMany(rules, n, maxRules))
	}
	for i := range s.PodFailurePolicy.Rules {
		rule, path := &s.PodFailurePolicy.Rules[i], rules.Index(i)
		errs = append(errs, oneOf(rule.Action, path.Child("action"),
			batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionFailIndex,
			batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount)...)
		if rule.Action == batchv1.PodFailurePolicyActionFailIndex && s.BackoffLimitPerIndex == nil {
			errs = append(errs, field.Invalid(path.Child("action"), rule.Action, "requires the backoffLimitPerIndex to be set"))
		}
		if rule.OnExitCodes != nil {
			errs = append(errs, validateExitCodes(rule.OnExitCodes, names, path.Child("onExitCodes"))...)
		}
		conditions := path.Child("onPodConditions")
		if n := len(rule.OnPodConditions); n > maxRules {
			errs = append(errs, field.TooMany(conditions, n, maxRules))
		}
		for k, c := range rule.OnPodConditions {
			errs = append(errs, check.QualifiedName(string(c.Type), conditions.Index(k).Child("type"))...)
			errs = append(errs, oneOf(c.Status, conditions.Index(k).Child("status"),
				corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)...)
		}
		switch codes, conditions := rule.OnExitCodes != nil, len(rule.OnPodConditions) > 0; {
		case codes && conditions:
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported"))
		case !codes && !conditions:
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required"))
		}
	}
	return errs
}

func validateExitCodes(codes *batchv1.PodFailurePolicyOnExitCodesRequirement, names map[string]bool, at *field.Path) field.ErrorList {
	errs := oneOf(codes.Operator, at.Child("operator"),
		batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn)
	if codes.ContainerName != nil && !names[*codes.ContainerName] {
		errs = append(errs, field.Invalid(at.Child("containerName"), *codes.ContainerName,
			"must be one of the container or initContainer names in the pod template"))
	}
	if len(codes.Values) == 0 {
		errs = append(errs, field.Invalid(at.Child("values"), codes.Values, "at least one value is required"))
	}
	if n := len(codes.Values); n > maxExitCodes {
		errs = append(errs, field.TooMany(at.Child("values"), n, maxExitCodes))
	}
	seen := map[int32]bool{}
	for i, value := range codes.Values {
		if value == 0 && codes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn {
			errs = append(errs, field.Invalid(at.Child("values").Index(i), value, "must not be 0 for the In operator"))
		}
		if seen[value] {
			errs = append(errs, field.Duplicate(at.Child("values").Index(i), value))
		}
		seen[value] = true
	}
	if !slices.IsSorted(codes.Values) {
		errs = append(errs, field.Invalid(at.Child("values"), codes.Values, "must be ordered"))
	}
	return errs
}

// oneOf is check.OneOf for fields whose messages list the values if there is none, too.
func oneOf[T ~string](value T, at *field.Path, values ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, fmt.Sprintf("valid values: %q", slices.Sorted(slices.Values(values))))}
	}
	return check.Supported(value, at, values...)
}

// validateTemplate validates the template of pods that run to completion.
func validateTemplate(s *batchv1.JobSpec, at *field.Path) field.ErrorList {
	errs := pod.ValidateTemplate(&s.Template, at.Child("template"))
	restart, path := s.Template.Spec.RestartPolicy, at.Child("template", "spec", "restartPolicy")
	switch {
	case restart == corev1.RestartPolicyAlways:
		errs = append(errs, field.Required(path, `valid values: "OnFailure", "Never"`))
	case restart != corev1.RestartPolicyOnFailure && restart != corev1.RestartPolicyNever:
		errs = append(errs, field.NotSupported(path, restart, []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}))
	case s.PodFailurePolicy != nil && restart != corev1.RestartPolicyNever:
		errs = append(errs, field.Invalid(path, restart, `only "Never" is supported when podFailurePolicy is specified`))
	}
	return errs
}

// validateCronName leaves room for the suffix that a cron job adds to its name for a job.
func validateCronName(name string, prefix bool) []string {
	texts := check.NameIsSubdomain(name, prefix)
	const room = 11
	if most := validation.DNS1035LabelMaxLength - room; len(strings.TrimSpace(name)) > most {
		texts = append(texts, "must be no more than 52 characters")
	}
	return texts
}
