package batch

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/pod"
)

const (
	// maxCompletions bounds indexed jobs, maxParallelism their pods.
	maxCompletions = 1_000_000
	maxParallelism = 100_000
)

// validateChoice checks that a job whose selector is made for it did not bring
// one of its own.
func validateChoice(j *batchv1.Job) field.ErrorList {
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
			errs = append(errs, field.Invalid(labelled, s.Template.Labels, "must be '"+want.value+"'"))
		}
	}
	if own := (metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(j.UID)}}); s.Selector.String() != own.String() {
		errs = append(errs, field.Invalid(specPath.Child("selector"), s.Selector, "`selector` not auto-generated"))
	}
	return errs
}

// validateJob checks the spec of a job; that of a cron job's has no selector.
func validateJob(s *batchv1.JobSpec, at *field.Path) field.ErrorList {
	errs := validateNumbers(s, at)
	if s.Selector == nil {
		errs = append(errs, field.Required(at.Child("selector"), ""))
	} else {
		errs = append(errs, metav1validation.ValidateLabelSelector(s.Selector, metav1validation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
	}
	if chosen, err := metav1.LabelSelectorAsSelector(s.Selector); err == nil && !chosen.Matches(labels.Set(s.Template.Labels)) {
		errs = append(errs, field.Invalid(at.Child("template", "metadata", "labels"), s.Template.Labels, "`selector` does not match template `labels`"))
	}
	return append(errs, validateWork(s, at)...)
}

// validateNumbers checks how many pods there are to be, and how often.
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
	return append(errs, validateMode(s, at)...)
}

func validateManager(name string, at *field.Path) field.ErrorList {
	errs := validation.IsDomainPrefixedPath(at, name)
	if len(name) > 63 {
		errs = append(errs, field.TooLong(at, name, 63))
	}
	return errs
}

func validateMode(s *batchv1.JobSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	indexed := ptr.Deref(s.CompletionMode, "") == batchv1.IndexedCompletion
	errs = append(errs, check.Supported(ptr.Deref(s.CompletionMode, batchv1.NonIndexedCompletion), at.Child("completionMode"),
		batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)...)
	if indexed {
		if s.Completions == nil {
			errs = append(errs, field.Required(at.Child("completions"), "when completion mode is Indexed"))
		} else if *s.Completions > maxCompletions {
			errs = append(errs, field.Invalid(at.Child("completions"), *s.Completions, check.LessThanOrEqual(maxCompletions)))
		}
		if n := ptr.Deref(s.Parallelism, 0); n > maxParallelism {
			errs = append(errs, field.Invalid(at.Child("parallelism"), n, check.LessThanOrEqual(maxParallelism)))
		}
	}
	if s.BackoffLimitPerIndex != nil && !indexed {
		errs = append(errs, field.Invalid(at.Child("backoffLimitPerIndex"), *s.BackoffLimitPerIndex, "requires indexed completion mode"))
	}
	if s.MaxFailedIndexes != nil && s.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Required(at.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
	}
	replacement := ptr.Deref(s.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	if s.PodFailurePolicy != nil {
		errs = append(errs, validateFailurePolicy(s, at)...)
		return append(errs, check.Supported(replacement, at.Child("podReplacementPolicy"), batchv1.Failed)...)
	}
	return append(errs, check.Supported(replacement, at.Child("podReplacementPolicy"), batchv1.Failed, batchv1.TerminatingOrFailed)...)
}

// validateFailurePolicy checks what a job makes of failed pods.
func validateFailurePolicy(s *batchv1.JobSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for _, list := range [][]corev1.Container{s.Template.Spec.Containers, s.Template.Spec.InitContainers} {
		for i := range list {
			names[list[i].Name] = true
		}
	}
	for i := range s.PodFailurePolicy.Rules {
		rule, path := &s.PodFailurePolicy.Rules[i], at.Child("podFailurePolicy", "rules").Index(i)
		errs = append(errs, check.OneOf(rule.Action, path.Child("action"), batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionFailIndex,
			batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount)...)
		if rule.Action == batchv1.PodFailurePolicyActionFailIndex && s.BackoffLimitPerIndex == nil {
			errs = append(errs, field.Invalid(path.Child("action"), rule.Action, "requires the backoffLimitPerIndex to be set"))
		}
		codes := rule.OnExitCodes
		switch {
		case codes != nil && len(rule.OnPodConditions) > 0:
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported"))
		case codes == nil && len(rule.OnPodConditions) == 0:
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required"))
		case codes != nil:
			errs = append(errs, validateExitCodes(codes, names, path.Child("onExitCodes"))...)
		}
		for k, c := range rule.OnPodConditions {
			errs = append(errs, check.QualifiedName(string(c.Type), path.Child("onPodConditions").Index(k).Child("type"))...)
		}
	}
	return errs
}

func validateExitCodes(codes *batchv1.PodFailurePolicyOnExitCodesRequirement, names map[string]bool, at *field.Path) field.ErrorList {
	errs := check.OneOf(codes.Operator, at.Child("operator"), batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn)
	if codes.ContainerName != nil && !names[*codes.ContainerName] {
		errs = append(errs, field.Invalid(at.Child("containerName"), *codes.ContainerName, "must be one of the container or initContainer names in the pod template"))
	}
	if len(codes.Values) == 0 {
		errs = append(errs, field.Invalid(at.Child("values"), codes.Values, "at least one value is required"))
	}
	for i, value := range codes.Values {
		if value == 0 && codes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn {
			errs = append(errs, field.Invalid(at.Child("values").Index(i), value, "must not be 0 for the In operator"))
		}
		if i > 0 && codes.Values[i-1] > value {
			errs = append(errs, field.Invalid(at.Child("values"), codes.Values, "must be ordered"))
		}
	}
	return errs
}

// validateWork checks the template of pods that end.
func validateWork(s *batchv1.JobSpec, at *field.Path) field.ErrorList {
	errs := pod.ValidateTemplate(&s.Template, at.Child("template"))
	restart, path := s.Template.Spec.RestartPolicy, at.Child("template", "spec", "restartPolicy")
	switch {
	case restart == corev1.RestartPolicyAlways:
		errs = append(errs, field.Required(path, `valid values: "OnFailure", "Never"`))
	case restart != corev1.RestartPolicyOnFailure && restart != corev1.RestartPolicyNever:
		errs = append(errs, check.Supported(restart, path, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	case s.PodFailurePolicy != nil && restart != corev1.RestartPolicyNever:
		errs = append(errs, field.Invalid(path, restart, `only "Never" is supported when podFailurePolicy is specified`))
	}
	return errs
}

// validateName leaves room for what a cron job puts behind its name for a job.
func validateCronName(name string, prefix bool) []string {
	texts := check.NameIsSubdomain(name, prefix)
	const room = 11
	if most := validation.DNS1035LabelMaxLength - room; len(strings.TrimSpace(name)) > most {
		texts = append(texts, "must be no more than 52 characters")
	}
	return texts
}
