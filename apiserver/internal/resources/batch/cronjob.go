package batch

import (
	"context"
	"regexp"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
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

func cronJobs(clock clock.PassiveClock) registry.Strategy[*batchv1.CronJob] {
	return registry.WithStatus(registry.Strategy[*batchv1.CronJob]{
		Resource: core.Resource{Group: batchv1.GroupName, Version: "v1", Name: "cronjobs", Kind: "CronJob", Namespaced: true},
		Singular: "cronjob", ShortNames: []string{"cj"}, Categories: []string{"all"},
		Default:       func(c *batchv1.CronJob) { defaultCronJob(&c.Spec) },
		HasGeneration: true,
		Create: registry.CreateStrategy[*batchv1.CronJob]{
			Prepare:      func(_ context.Context, c *batchv1.CronJob) { dropAlpha(&c.Spec.JobTemplate.Spec, &batchv1.JobSpec{}) },
			ValidateName: validateCronName,
			Validate:     func(_ context.Context, c *batchv1.CronJob) field.ErrorList { return validateCronJob(&c.Spec, nil) },
			Warnings:     func(_ context.Context, c *batchv1.CronJob) []string { return workload.NameWarnings(c.Name) },
		},
		Update: registry.UpdateStrategy[*batchv1.CronJob]{
			AllowUnconditional: true,
			Prepare: func(_ context.Context, c, old *batchv1.CronJob) {
				dropAlpha(&c.Spec.JobTemplate.Spec, &old.Spec.JobTemplate.Spec)
			},
			Validate: func(_ context.Context, c, old *batchv1.CronJob) field.ErrorList {
				return validateCronJob(&c.Spec, &old.Spec)
			},
		},
		Read: registry.ReadStrategy[*batchv1.CronJob]{
			Columns: cell.Describe(cell.Columns(batchv1.CronJobSpec{}.SwaggerDoc(),
				"Name", "Schedule=schedule", "Timezone=timeZone", "Suspend:boolean=suspend", "Active:integer", "Last Schedule", "Age",
				"Containers*", "Images*", "Selector*",
			), map[string]string{
				"Active":        batchv1.CronJobStatus{}.SwaggerDoc()["active"],
				"Last Schedule": batchv1.CronJobStatus{}.SwaggerDoc()["lastScheduleTime"],
				"Selector":      batchv1.JobSpec{}.SwaggerDoc()["selector"],
			}),
			Row: func(c *batchv1.CronJob) []any {
				last := cell.None
				if c.Status.LastScheduleTime != nil {
					last = cell.Age(clock.Now(), *c.Status.LastScheduleTime)
				}
				names, images := cell.Containers(c.Spec.JobTemplate.Spec.Template.Spec.Containers)
				selector := cell.Selector(c.Spec.JobTemplate.Spec.Selector)
				return []any{
					c.Name, c.Spec.Schedule, cell.OrNone(ptr.Deref(c.Spec.TimeZone, "")), cell.Bool(c.Spec.Suspend), int64(len(c.Status.Active)), last,
					cell.Age(clock.Now(), c.CreationTimestamp), names, images, selector,
				}
			},
		},
	})
}

func defaultCronJob(s *batchv1.CronJobSpec) {
	pod.DefaultTemplate(&s.JobTemplate.Spec.Template)
	if s.ConcurrencyPolicy == "" {
		s.ConcurrencyPolicy = batchv1.AllowConcurrent
	}
	workload.DefaultTo(&s.Suspend, false)
	workload.DefaultTo(&s.SuccessfulJobsHistoryLimit, 3)
	workload.DefaultTo(&s.FailedJobsHistoryLimit, 1)
	defaultFailurePolicy(s.JobTemplate.Spec.PodFailurePolicy)
}

// validateCronJob validates a cron job. A stored one may have a time zone in its schedule, or one
// that this server does not know, as long as it does not change.
func validateCronJob(s, old *batchv1.CronJobSpec) field.ErrorList {
	var errs field.ErrorList
	schedule := specPath.Child("schedule")
	if s.Schedule != "" {
		if problem := checkSchedule(s.Schedule); problem != "" {
			errs = append(errs, field.Invalid(schedule, s.Schedule, problem))
		}
		switch stored := old != nil && strings.Contains(old.Schedule, "TZ"); {
		case !strings.Contains(s.Schedule, "TZ"):
		case !stored:
			errs = append(errs, field.Invalid(schedule, s.Schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
		case s.TimeZone != nil:
			errs = append(errs, field.Invalid(schedule, s.Schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"))
		}
	}
	if s.StartingDeadlineSeconds != nil {
		errs = append(errs, check.Nonnegative(*s.StartingDeadlineSeconds, specPath.Child("startingDeadlineSeconds"))...)
	}
	if s.TimeZone != nil && (old == nil || !ptr.Equal(s.TimeZone, old.TimeZone)) {
		errs = append(errs, validateZone(*s.TimeZone, specPath.Child("timeZone"))...)
	}
	errs = append(errs, check.OneOf(s.ConcurrencyPolicy, specPath.Child("concurrencyPolicy"),
		batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	at := specPath.Child("jobTemplate", "spec")
	errs = append(errs, validateNumbers(&s.JobTemplate.Spec, at)...)
	errs = append(errs, validateTemplate(&s.JobTemplate.Spec, at)...)
	if selector := s.JobTemplate.Spec.Selector; selector != nil {
		errs = append(errs, field.Invalid(at.Child("selector"), selector, "`selector` will be auto-generated"))
	}
	if ptr.Deref(s.JobTemplate.Spec.ManualSelector, false) {
		errs = append(errs, field.NotSupported(at.Child("manualSelector"), true, []string{"nil", "false"}))
	}
	errs = append(errs, workload.NonnegativeCounts(specPath, []workload.Count{
		{Field: "successfulJobsHistoryLimit", Value: *s.SuccessfulJobsHistoryLimit},
		{Field: "failedJobsHistoryLimit", Value: *s.FailedJobsHistoryLimit},
	})...)
	return append(errs, check.Required(specPath, "schedule", s.Schedule)...) // last, as with upstream
}

// zonePart is a component of a time zone's name (https://data.iana.org/time-zones/theory.html#naming).
var zonePart = regexp.MustCompile(`^[A-Za-z._0-9+-]{1,14}$`)

func validateZone(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Invalid(at, name, "timeZone must be nil or non-empty string")}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." || strings.HasPrefix(part, "-") || !zonePart.MatchString(part) {
			return field.ErrorList{field.Invalid(at, name, "unknown time zone "+name)}
		}
	}
	var errs field.ErrorList
	if strings.EqualFold(name, "Local") {
		errs = append(errs, field.Invalid(at, name, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"))
	}
	if _, err := time.LoadLocation(name); err != nil {
		errs = append(errs, field.Invalid(at, name, err.Error()))
	}
	return errs
}
