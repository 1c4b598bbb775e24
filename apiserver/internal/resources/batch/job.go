package batch

import (
	"context"
	"fmt"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/pod"
	"kctl/apiserver/internal/resources/workload"
	"kctl/proto/core"
)

// Served are the resources of the group batch.
func Served(o registry.Options) []registry.Served {
	ofJob := func(j *batchv1.Job) *corev1.PodTemplateSpec { return &j.Spec.Template }
	ofCronJob := func(c *batchv1.CronJob) *corev1.PodTemplateSpec { return &c.Spec.JobTemplate.Spec.Template }
	return registry.Serve(
		registry.NewStore(workload.WithTemplate(jobs(o.Clock), "spec.template", ofJob), o),
		registry.NewStore(workload.WithTemplate(cronJobs(o.Clock), "spec.jobTemplate.spec.template", ofCronJob), o),
	)
}

// Formerly, the labels by which jobs find their pods had no domain.
const (
	oldUIDLabel  = "controller-uid"
	oldNameLabel = "job-name"
)

var specPath = field.NewPath("spec")

func jobs(clock clock.PassiveClock) registry.Strategy[*batchv1.Job] {
	return registry.WithStatus(registry.Strategy[*batchv1.Job]{
		Resource: core.Resource{Group: batchv1.GroupName, Version: "v1", Name: "jobs", Kind: "Job", Namespaced: true},
		Singular: "job", Categories: []string{"all"},
		Default:       defaultJob,
		HasGeneration: true,
		Create: registry.CreateStrategy[*batchv1.Job]{
			Prepare: func(_ context.Context, j *batchv1.Job) {
				generateSelector(j)
				dropAlpha(&j.Spec, &batchv1.JobSpec{})
			},
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, j *batchv1.Job) field.ErrorList {
				errs := append(validatePodNames(j), validateManualSelector(j)...)
				return append(errs, validateJob(&j.Spec, specPath)...)
			},
			Warnings: func(_ context.Context, j *batchv1.Job) []string {
				return append(workload.NameWarnings(j.Name), sizeWarnings(&j.Spec)...)
			},
			NameRegenerated: replaceTakenName,
		},
		Update: registry.UpdateStrategy[*batchv1.Job]{
			AllowUnconditional: true,
			Prepare:            func(_ context.Context, j, old *batchv1.Job) { dropAlpha(&j.Spec, &old.Spec) },
			Validate: func(_ context.Context, j, old *batchv1.Job) field.ErrorList {
				return append(validateJob(&j.Spec, specPath), sameJob(j, old)...)
			},
		},
		Status: &registry.UpdateStrategy[*batchv1.Job]{
			Prepare: func(_ context.Context, j, _ *batchv1.Job) { defaultLabels(j) },
			Validate: func(_ context.Context, j, old *batchv1.Job) field.ErrorList {
				return validateStatus(j, old)
			},
		},
		Delete: registry.DeleteStrategy[*batchv1.Job]{OrphansByDefault: true},
		Read: registry.ReadStrategy[*batchv1.Job]{
			Fields: func(j *batchv1.Job) fields.Set {
				return fields.Set{"status.successful": fmt.Sprint(j.Status.Succeeded)}
			},
			UnknownFieldMessage: func(name string) string { return fmt.Sprintf("field label %q not supported for Job", name) },
			Columns: cell.Describe(cell.Columns(batchv1.JobSpec{}.SwaggerDoc(),
				"Name", "Status", "Completions=completions", "Duration", "Age", "Containers*", "Images*", "Selector*",
			), map[string]string{
				"Status":      "Status of the job.",
				"Completions": batchv1.JobStatus{}.SwaggerDoc()["succeeded"],
				"Duration":    "Time required to complete the job.",
				"Selector":    batchv1.JobSpec{}.SwaggerDoc()["selector"],
			}),
			Row: func(j *batchv1.Job) []any {
				names, images := cell.Containers(j.Spec.Template.Spec.Containers)
				return []any{
					j.Name, statusOf(j), completions(j), durationText(j, clock.Now()), cell.Age(clock.Now(), j.CreationTimestamp),
					names, images, metav1.FormatLabelSelector(j.Spec.Selector),
				}
			},
		},
	})
}

func defaultJob(j *batchv1.Job) {
	s := &j.Spec
	defaultSpec(s)
	defaultLabels(j)
}

// defaultLabels gives a job without labels those of its pods, whether it is written whole or only
// its status.
func defaultLabels(j *batchv1.Job) {
	if len(j.Labels) == 0 {
		j.Labels = maps.Clone(j.Spec.Template.Labels)
	}
}

func defaultSpec(s *batchv1.JobSpec) {
	pod.DefaultTemplate(&s.Template)
	if s.Completions == nil && s.Parallelism == nil {
		s.Completions = new(int32(1))
	}
	workload.DefaultTo(&s.Parallelism, 1)
	retries := int32(6)
	if s.BackoffLimitPerIndex != nil {
		retries = 1<<31 - 1
	}
	workload.DefaultTo(&s.BackoffLimit, retries)
	workload.DefaultTo(&s.CompletionMode, batchv1.NonIndexedCompletion)
	workload.DefaultTo(&s.Suspend, false)
	workload.DefaultTo(&s.ManualSelector, false)
	replacement := batchv1.TerminatingOrFailed
	if s.PodFailurePolicy != nil {
		replacement = batchv1.Failed
	}
	workload.DefaultTo(&s.PodReplacementPolicy, replacement)
	defaultFailurePolicy(s.PodFailurePolicy)
}

func defaultFailurePolicy(p *batchv1.PodFailurePolicy) {
	if p == nil {
		return
	}
	for i := range p.Rules {
		for k := range p.Rules[i].OnPodConditions {
			if c := &p.Rules[i].OnPodConditions[k]; c.Status == "" {
				c.Status = corev1.ConditionTrue
			}
		}
	}
}

// replaceTakenName replaces the taken name with the job's new one.
func replaceTakenName(j *batchv1.Job, taken string) {
	for _, labels := range []map[string]string{j.Labels, j.Spec.Template.Labels} {
		for _, label := range []string{oldNameLabel, batchv1.JobNameLabel} {
			if labels[label] == taken {
				labels[label] = j.Name
			}
		}
	}
}

// generateSelector gives a job a selector for exactly its own pods, unless the
// user specifies one.
func generateSelector(j *batchv1.Job) {
	s := &j.Spec
	if ptr.Deref(s.ManualSelector, false) {
		return
	}
	alike := maps.Equal(j.Labels, s.Template.Labels) // defaulted: the job has all labels of its pods
	if s.Template.Labels == nil {
		s.Template.Labels = map[string]string{}
	}
	for _, label := range []struct{ key, value string }{
		{oldUIDLabel, string(j.UID)}, {oldNameLabel, j.Name},
		{batchv1.ControllerUidLabel, string(j.UID)}, {batchv1.JobNameLabel, j.Name},
	} {
		if _, named := s.Template.Labels[label.key]; !named {
			s.Template.Labels[label.key] = label.value
		}
	}
	if s.Selector == nil {
		s.Selector = &metav1.LabelSelector{}
	}
	if s.Selector.MatchLabels == nil {
		s.Selector.MatchLabels = map[string]string{}
	}
	if _, named := s.Selector.MatchLabels[batchv1.ControllerUidLabel]; !named {
		s.Selector.MatchLabels[batchv1.ControllerUidLabel] = string(j.UID)
	}
	if alike {
		j.Labels = maps.Clone(s.Template.Labels)
	}
}

// sameJob checks that an update keeps what running pods were made from.
func sameJob(j, old *batchv1.Job) field.ErrorList {
	now, was := &j.Spec, &old.Spec
	var errs field.ErrorList
	if ptr.Deref(now.CompletionMode, "") != batchv1.IndexedCompletion {
		errs = append(errs, check.Unchanged(now.Completions, was.Completions, specPath.Child("completions"))...)
	} else if !equality.Semantic.DeepEqual(now.Completions, was.Completions) &&
		!equality.Semantic.DeepEqual(now.Completions, now.Parallelism) {
		errs = append(errs, field.Invalid(specPath.Child("completions"), now.Completions, "can only be modified in tandem with spec.parallelism"))
	}
	errs = append(errs, check.Unchanged(now.Selector, was.Selector, specPath.Child("selector"))...)
	errs = append(errs, sameTemplate(&now.Template, was.Template.DeepCopy(), hasNoPods(old))...)
	for _, f := range []struct {
		name     string
		now, old any
	}{
		{"completionMode", now.CompletionMode, was.CompletionMode}, {"podFailurePolicy", now.PodFailurePolicy, was.PodFailurePolicy},
		{"backoffLimitPerIndex", now.BackoffLimitPerIndex, was.BackoffLimitPerIndex}, {"managedBy", now.ManagedBy, was.ManagedBy},
		{"successPolicy", now.SuccessPolicy, was.SuccessPolicy},
	} {
		if !equality.Semantic.DeepEqual(f.now, f.old) {
			errs = append(errs, field.Invalid(specPath.Child(f.name), check.GoFieldNames{Value: f.now}, check.Immutable))
		}
	}
	return errs
}

// hasNoPods tells whether a job is suspended and the last of its pods is gone, so that those
// to come may be made from another template (KEP-5440). While the job has begun but lacks the
// condition Suspended, its controller may be making pods still.
func hasNoPods(j *batchv1.Job) bool {
	return ptr.Deref(j.Spec.Suspend, false) && j.Status.Active == 0 &&
		(j.Status.StartTime == nil || isTrue(&j.Status, batchv1.JobSuspended))
}

// sameTemplate checks that a template is unchanged; while there are no pods, labels,
// annotations, resources and what restricts pods to nodes may change.
func sameTemplate(now, was *corev1.PodTemplateSpec, idle bool) field.ErrorList {
	at := specPath.Child("template")
	if !idle {
		if equality.Semantic.DeepEqual(now, was) {
			return nil
		}
		return field.ErrorList{field.Invalid(at, check.GoFieldNames{Value: now}, check.Immutable)}
	}
	was.Spec.Affinity = withNodeAffinityOf(was.Spec.Affinity, now.Spec.Affinity)
	was.Spec.NodeSelector = now.Spec.NodeSelector
	was.Spec.Tolerations, was.Spec.SchedulingGates = now.Spec.Tolerations, now.Spec.SchedulingGates
	for _, list := range []struct{ now, was []corev1.Container }{
		{now.Spec.Containers, was.Spec.Containers}, {now.Spec.InitContainers, was.Spec.InitContainers},
	} {
		for i := range min(len(list.now), len(list.was)) {
			list.was[i].Resources = list.now[i].Resources
		}
	}
	if equality.Semantic.DeepEqual(now.Spec, was.Spec) {
		return nil
	}
	return field.ErrorList{field.Invalid(at.Child("spec"), check.GoFieldNames{Value: now.Spec}, check.Immutable)}
}

// withNodeAffinityOf is an affinity with another's part about nodes.
func withNodeAffinityOf(a, other *corev1.Affinity) *corev1.Affinity {
	merged := corev1.Affinity{}
	if a != nil {
		merged.PodAffinity, merged.PodAntiAffinity = a.PodAffinity, a.PodAntiAffinity
	}
	switch {
	case other != nil:
		merged.NodeAffinity = other.NodeAffinity
	case merged == corev1.Affinity{}:
		return nil
	}
	return &merged
}

// statusOf is a job's status in a table.
func statusOf(j *batchv1.Job) string {
	has := map[batchv1.JobConditionType]bool{}
	for _, c := range j.Status.Conditions {
		has[c.Type] = c.Status == corev1.ConditionTrue
	}
	switch {
	case has[batchv1.JobComplete]:
		return string(batchv1.JobComplete)
	case has[batchv1.JobFailed]:
		return string(batchv1.JobFailed)
	case j.DeletionTimestamp != nil:
		return "Terminating"
	case has[batchv1.JobSuspended]:
		return string(batchv1.JobSuspended)
	case has[batchv1.JobFailureTarget]:
		return string(batchv1.JobFailureTarget)
	case has[batchv1.JobSuccessCriteriaMet]:
		return string(batchv1.JobSuccessCriteriaMet)
	}
	return "Running"
}

func completions(j *batchv1.Job) string {
	if j.Spec.Completions != nil {
		return fmt.Sprintf("%d/%d", j.Status.Succeeded, *j.Spec.Completions)
	}
	if n := ptr.Deref(j.Spec.Parallelism, 0); n > 1 {
		return fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, n)
	}
	return fmt.Sprintf("%d/1", j.Status.Succeeded)
}

// durationText is how long the job ran, or has run.
func durationText(j *batchv1.Job, now time.Time) string {
	if j.Status.StartTime == nil {
		return ""
	}
	if j.Status.CompletionTime != nil {
		now = j.Status.CompletionTime.Time
	}
	return duration.HumanDuration(now.Sub(j.Status.StartTime.Time))
}

// sizeWarnings warns about more indexes than a job's status can hold.
func sizeWarnings(s *batchv1.JobSpec) []string {
	if ptr.Deref(s.CompletionMode, "") != batchv1.IndexedCompletion || ptr.Deref(s.Completions, 0) <= 100_000 ||
		ptr.Deref(s.Parallelism, 0) <= 10_000 {
		return nil
	}
	return []string{"spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, " +
		"Kubernetes might not be able to track completedIndexes when a big number of indexes fail"}
}

// dropAlpha drops the fields of workload-aware scheduling (KEP-5547), an alpha feature,
// unless they are already stored, as kube-apiserver does.
func dropAlpha(spec, old *batchv1.JobSpec) {
	if old.Scheduling == nil {
		spec.Scheduling = nil
	}
}
