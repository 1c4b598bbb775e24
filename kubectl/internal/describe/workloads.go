package describe

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

// workload is what is read of deployments and jobs, whose Go types kctl does
// without.
type workload struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas        *int32                 `json:"replicas"`
		Selector        *metav1.LabelSelector  `json:"selector"`
		Template        corev1.PodTemplateSpec `json:"template"`
		MinReadySeconds int32                  `json:"minReadySeconds"`
		Strategy        struct {
			Type          string `json:"type"`
			RollingUpdate *struct {
				MaxUnavailable *intstr.IntOrString `json:"maxUnavailable"`
				MaxSurge       *intstr.IntOrString `json:"maxSurge"`
			} `json:"rollingUpdate"`
		} `json:"strategy"`
		Parallelism             *int32 `json:"parallelism"`
		Completions             *int32 `json:"completions"`
		CompletionMode          string `json:"completionMode"`
		Suspend                 *bool  `json:"suspend"`
		BackoffLimit            *int32 `json:"backoffLimit"`
		ActiveDeadlineSeconds   *int64 `json:"activeDeadlineSeconds"`
		TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished"`
	} `json:"spec"`
	Status struct {
		Replicas            int32        `json:"replicas"`
		UpdatedReplicas     int32        `json:"updatedReplicas"`
		AvailableReplicas   int32        `json:"availableReplicas"`
		UnavailableReplicas int32        `json:"unavailableReplicas"`
		Active              int32        `json:"active"`
		Succeeded           int32        `json:"succeeded"`
		Failed              int32        `json:"failed"`
		Ready               *int32       `json:"ready"`
		StartTime           *metav1.Time `json:"startTime"`
		CompletionTime      *metav1.Time `json:"completionTime"`
		Conditions          []condition  `json:"conditions"`
		CompletedIndexes    string       `json:"completedIndexes"`
	} `json:"status"`
}

func (p *page) deployment(object *unstructured.Unstructured, events []core.Event) error {
	return decodeAnd(func(p *page, d *workload, events []core.Event) {
		p.names(&d.ObjectMeta)
		p.line("CreationTimestamp", "%s", d.CreationTimestamp.Format(timeFormat))
		p.marks(&d.ObjectMeta)
		p.line("Selector", "%s", metav1.FormatLabelSelector(d.Spec.Selector))
		s := d.Status
		p.line("Replicas", "%d desired | %d updated | %d total | %d available | %d unavailable",
			ptr.Deref(d.Spec.Replicas, 1), s.UpdatedReplicas, s.Replicas, s.AvailableReplicas, s.UnavailableReplicas)
		p.line("StrategyType", "%s", d.Spec.Strategy.Type)
		p.line("MinReadySeconds", "%d", d.Spec.MinReadySeconds)
		if r := d.Spec.Strategy.RollingUpdate; r != nil {
			p.line("RollingUpdateStrategy", "%s max unavailable, %s max surge", r.MaxUnavailable.String(), r.MaxSurge.String())
		}
		p.template(&d.Spec.Template)
		p.reasons(s.Conditions)
		p.replicaSets(object)
		p.events(events)
	})(p, object, events)
}

func (p *page) job(j *workload, events []core.Event) {
	p.names(&j.ObjectMeta)
	if j.Spec.Selector != nil {
		p.line("Selector", "%s", metav1.FormatLabelSelector(j.Spec.Selector))
	}
	p.marks(&j.ObjectMeta)
	p.controlledBy(&j.ObjectMeta)
	p.line("Parallelism", "%d", ptr.Deref(j.Spec.Parallelism, 1))
	p.line("Completions", "%s", formatNumber(j.Spec.Completions, ""))
	p.line("Completion Mode", "%s", j.Spec.CompletionMode)
	p.line("Suspend", "%t", ptr.Deref(j.Spec.Suspend, false))
	p.line("Backoff Limit", "%d", ptr.Deref(j.Spec.BackoffLimit, 6))
	if j.Spec.TTLSecondsAfterFinished != nil {
		p.line("TTL Seconds After Finished", "%d", *j.Spec.TTLSecondsAfterFinished)
	}
	p.jobTimes(j)
	p.template(&j.Spec.Template)
	p.events(events)
}

func (p *page) jobTimes(j *workload) {
	s := j.Status
	if s.StartTime != nil {
		p.line("Start Time", "%s", s.StartTime.Format(timeFormat))
	}
	if s.CompletionTime != nil {
		p.line("Completed At", "%s", s.CompletionTime.Format(timeFormat))
		if s.StartTime != nil {
			p.line("Duration", "%s", formatAge(s.StartTime.Time, s.CompletionTime.Time))
		}
	}
	if j.Spec.ActiveDeadlineSeconds != nil {
		p.line("Active Deadline Seconds", "%ds", *j.Spec.ActiveDeadlineSeconds)
	}
	if s.Ready == nil {
		p.line("Pods Statuses", "%d Active / %d Succeeded / %d Failed", s.Active, s.Succeeded, s.Failed)
	} else {
		p.line("Pods Statuses", "%d Active (%d Ready) / %d Succeeded / %d Failed", s.Active, *s.Ready, s.Succeeded, s.Failed)
	}
	if j.Spec.CompletionMode == "Indexed" {
		p.line("Completed Indexes", "%s", cmp.Or(s.CompletedIndexes, "<none>"))
	}
}
