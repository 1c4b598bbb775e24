package batch

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/workload"
)

var (
	statusPath     = field.NewPath("status")
	conditionsPath = statusPath.Child("conditions")
)

// validateStatus validates a job's status. Earlier errors may stay, also where the list
// of conditions goes on to change: a controller of another release may have written them.
func validateStatus(j, old *batchv1.Job) field.ErrorList {
	errs := workload.NonnegativeCounts(statusPath, []workload.Count{
		{Field: "active", Value: j.Status.Active}, {Field: "succeeded", Value: j.Status.Succeeded}, {Field: "failed", Value: j.Status.Failed},
		{Field: "ready", Value: ptr.Deref(j.Status.Ready, 0)}, {Field: "terminating", Value: ptr.Deref(j.Status.Terminating, 0)},
	})
	known := map[string]bool{}
	for _, e := range statusErrors(old) {
		known[e.Field+e.Detail] = true
	}
	errs = append(errs, slices.DeleteFunc(statusErrors(j), func(e *field.Error) bool { return known[e.Field+e.Detail] })...)
	return append(errs, statusChange(j, old)...)
}

// statusErrors are the errors of a status by itself.
func statusErrors(j *batchv1.Job) field.ErrorList {
	s := &j.Status
	var errs field.ErrorList
	if s.Ready != nil && *s.Ready > s.Active {
		errs = append(errs, field.Invalid(statusPath.Child("ready"), *s.Ready, "cannot set more ready pods than active"))
	}
	errs = append(errs, uncountedErrors(s.UncountedTerminatedPods)...)
	errs = append(errs, conditionErrors(j)...)
	errs = append(errs, timeErrors(s)...)
	if isTrue(s, batchv1.JobComplete) || isTrue(s, batchv1.JobFailed) {
		errs = append(errs, finishedErrors(j)...)
	}
	return append(errs, indexErrors(j)...)
}

func isTrue(s *batchv1.JobStatus, kind batchv1.JobConditionType) bool {
	return slices.ContainsFunc(s.Conditions, func(c batchv1.JobCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}

func uncountedErrors(u *batchv1.UncountedTerminatedPods) field.ErrorList {
	if u == nil {
		return nil
	}
	var errs field.ErrorList
	seen := sets.New[types.UID]()
	for _, list := range []struct {
		name string
		uids []types.UID
	}{{"succeeded", u.Succeeded}, {"failed", u.Failed}} {
		for i, uid := range list.uids {
			at := statusPath.Child("uncountedTerminatedPods", list.name).Index(i)
			switch {
			case uid == "":
				errs = append(errs, field.Invalid(at, uid, "must not be empty"))
			case seen.Has(uid):
				errs = append(errs, field.Duplicate(at, uid))
			}
			seen.Insert(uid)
		}
	}
	return errs
}

// conditionErrors are invalid combinations of conditions.
func conditionErrors(j *batchv1.Job) field.ErrorList {
	s := &j.Status
	complete, failed := isTrue(s, batchv1.JobComplete), isTrue(s, batchv1.JobFailed)
	met, target := isTrue(s, batchv1.JobSuccessCriteriaMet), isTrue(s, batchv1.JobFailureTarget)
	var errs field.ErrorList
	for _, rule := range []struct {
		broken bool
		says   string
	}{
		{complete && failed, "cannot set Complete=True and Failed=true conditions"},
		{complete && target, "cannot set Complete=True and FailureTarget=true conditions"},
		{failed && !target, "cannot set Failed=True condition without the FailureTarget=true condition"},
		{complete && !met, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"},
		{complete && !met && j.Spec.SuccessPolicy != nil, "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"},
		{met && failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions"},
		{met && target, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"},
	} {
		if rule.broken {
			errs = append(errs, field.Invalid(conditionsPath, field.OmitValueType{}, rule.says))
		}
	}
	return errs
}

func timeErrors(s *batchv1.JobStatus) field.ErrorList {
	at := statusPath.Child("completionTime")
	complete, ended := isTrue(s, batchv1.JobComplete), s.CompletionTime != nil
	var errs field.ErrorList
	if ended && !complete {
		errs = append(errs, field.Invalid(at, s.CompletionTime, "cannot set completionTime when there is no Complete=True condition"))
	}
	if complete && !ended {
		errs = append(errs, field.Required(at, "completionTime is required for Complete jobs"))
	}
	if ended && s.StartTime != nil && s.CompletionTime.Before(s.StartTime) {
		errs = append(errs, field.Invalid(at, s.CompletionTime, "must be equal to or after `startTime`"))
	}
	return errs
}

// finishedErrors are the errors of a finished job: it has no pods left, and was
// started unless it was suspended with nothing to do.
func finishedErrors(j *batchv1.Job) field.ErrorList {
	var errs field.ErrorList
	s := &j.Status
	neverStarts := ptr.Deref(j.Spec.Suspend, false) && ptr.Equal(j.Spec.Completions, new(int32(0)))
	if s.StartTime == nil && !neverStarts {
		errs = append(errs, field.Required(statusPath.Child("startTime"), "startTime is required for finished job"))
	}
	if s.Active > 0 {
		errs = append(errs, field.Invalid(statusPath.Child("active"), s.Active, "active>0 is invalid for finished job"))
	}
	if terminating := ptr.Deref(s.Terminating, 0); terminating > 0 {
		errs = append(errs, field.Invalid(statusPath.Child("terminating"), terminating, "terminating>0 is invalid for finished job"))
	}
	if u := s.UncountedTerminatedPods; u != nil && len(u.Succeeded)+len(u.Failed) > 0 {
		shown := struct{ Succeeded, Failed []types.UID }{u.Succeeded, u.Failed}
		errs = append(errs, field.Invalid(statusPath.Child("uncountedTerminatedPods"), shown, "must be empty for finished job"))
	}
	return errs
}

// indexErrors are about the finished indexes of an Indexed job.
func indexErrors(j *batchv1.Job) field.ErrorList {
	s, indexed := &j.Status, ptr.Deref(j.Spec.CompletionMode, "") == batchv1.IndexedCompletion
	completed, failed := statusPath.Child("completedIndexes"), statusPath.Child("failedIndexes")
	var errs field.ErrorList
	if s.CompletedIndexes != "" && !indexed {
		errs = append(errs, field.Invalid(completed, s.CompletedIndexes,
			"cannot set non-empty completedIndexes when non-indexed completion mode"))
	}
	if s.FailedIndexes != nil && j.Spec.BackoffLimitPerIndex == nil {
		return append(errs, field.Invalid(failed, *s.FailedIndexes, "cannot set non-null failedIndexes when backoffLimitPerIndex is null"))
	}
	if j.Spec.Completions == nil {
		return errs
	}
	done, err := parseIndexes(s.CompletedIndexes, *j.Spec.Completions)
	if err != nil {
		errs = append(errs, field.Invalid(completed, s.CompletedIndexes, "error parsing completedIndexes: "+err.Error()))
	}
	if s.FailedIndexes == nil {
		return errs
	}
	given, err2 := parseIndexes(*s.FailedIndexes, *j.Spec.Completions)
	if err2 != nil {
		errs = append(errs, field.Invalid(failed, *s.FailedIndexes, "error parsing failedIndexes: "+err2.Error()))
	}
	if at, both := overlap(done, given); both && err == nil && err2 == nil {
		errs = append(errs, field.Invalid(failed, *s.FailedIndexes, fmt.Sprintf("failedIndexes and completedIndexes overlap at index: %d", at)))
	}
	return errs
}

// statusChange are the errors of a status's change.
func statusChange(j, old *batchv1.Job) field.ErrorList {
	now, was := &j.Status, &old.Status
	var errs field.ErrorList
	for _, kind := range []batchv1.JobConditionType{
		batchv1.JobFailed, batchv1.JobComplete, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet,
	} {
		if isTrue(was, kind) && !isTrue(now, kind) {
			terminal := "terminal "
			if kind == batchv1.JobSuccessCriteriaMet {
				terminal = ""
			}
			errs = append(errs, field.Invalid(conditionsPath, field.OmitValueType{},
				fmt.Sprintf("cannot disable the %s%s=True condition", terminal, kind)))
		}
	}
	if isTrue(was, batchv1.JobComplete) && !isTrue(was, batchv1.JobSuccessCriteriaMet) && isTrue(now, batchv1.JobSuccessCriteriaMet) {
		errs = append(errs, field.Invalid(conditionsPath, field.OmitValueType{},
			"cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"))
	}
	resumes := isTrue(was, batchv1.JobSuspended) && slices.ContainsFunc(now.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionFalse
	})
	if was.StartTime != nil && !now.StartTime.Equal(was.StartTime) && !ptr.Deref(j.Spec.Suspend, false) && !resumes {
		errs = append(errs, field.Invalid(statusPath.Child("startTime"), now.StartTime, "field is immutable for unsuspended job once set"))
	}
	if was.CompletionTime != nil && now.CompletionTime != nil && !now.CompletionTime.Equal(was.CompletionTime) {
		errs = append(errs, field.Invalid(statusPath.Child("completionTime"), now.CompletionTime, "field is immutable"))
	}
	if now.Failed < was.Failed {
		errs = append(errs, field.Invalid(statusPath.Child("failed"), now.Failed, "cannot decrease the failed counter"))
	}
	scales := ptr.Deref(j.Spec.CompletionMode, "") == batchv1.IndexedCompletion && ptr.Equal(j.Spec.Completions, j.Spec.Parallelism)
	if now.Succeeded < was.Succeeded && !scales {
		errs = append(errs, field.Invalid(statusPath.Child("succeeded"), now.Succeeded, "cannot decrease the succeeded counter"))
	}
	return errs
}
