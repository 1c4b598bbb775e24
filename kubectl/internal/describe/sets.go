package describe

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

// replicas is what is read of replica sets, stateful sets and daemon sets.
type replicas struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas       *int32                 `json:"replicas"`
		Selector       *metav1.LabelSelector  `json:"selector"`
		Template       corev1.PodTemplateSpec `json:"template"`
		ServiceName    string                 `json:"serviceName"`
		PodManagement  string                 `json:"podManagementPolicy"`
		ClaimRetention *struct {
			WhenDeleted string `json:"whenDeleted"`
			WhenScaled  string `json:"whenScaled"`
		} `json:"persistentVolumeClaimRetentionPolicy"`
		UpdateStrategy struct {
			Type          string `json:"type"`
			RollingUpdate *struct {
				Partition      *int32              `json:"partition"`
				MaxUnavailable *intstr.IntOrString `json:"maxUnavailable"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
		VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
	} `json:"spec"`
	Status struct {
		Replicas               int32       `json:"replicas"`
		DesiredNumberScheduled int32       `json:"desiredNumberScheduled"`
		CurrentNumberScheduled int32       `json:"currentNumberScheduled"`
		UpdatedNumberScheduled int32       `json:"updatedNumberScheduled"`
		NumberAvailable        int32       `json:"numberAvailable"`
		NumberMisscheduled     int32       `json:"numberMisscheduled"`
		Conditions             []condition `json:"conditions"`
	} `json:"status"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (p *page) statefulSet(s *replicas, events []core.Event) {
	p.names(&s.ObjectMeta)
	p.line("CreationTimestamp", "%s", s.CreationTimestamp.Format(timeFormat))
	p.line("Selector", "%s", metav1.FormatLabelSelector(s.Spec.Selector))
	p.marks(&s.ObjectMeta)
	if s.Spec.ServiceName != "" {
		p.line("Service Name", "%s", s.Spec.ServiceName)
	}
	p.line("Pod Management Policy", "%s", s.Spec.PodManagement)
	p.line("Replicas", "%d desired | %d total", ptr.Deref(s.Spec.Replicas, 1), s.Status.Replicas)
	p.line("Update Strategy", "%s", s.Spec.UpdateStrategy.Type)
	if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil {
		p.under(func() {
			if r.Partition != nil {
				p.line("Partition", "%d", *r.Partition)
			}
			if r.MaxUnavailable != nil {
				p.line("MaxUnavailable", "%s", r.MaxUnavailable.String())
			}
		})
	}
	if r := s.Spec.ClaimRetention; r != nil {
		p.head("Persistent Volume Claim Retention Policy")
		p.under(func() {
			p.line("WhenDeleted", "%s", r.WhenDeleted)
			p.line("WhenScaled", "%s", r.WhenScaled)
		})
	}
	p.phases()
	p.template(&s.Spec.Template)
	p.claimTemplates(s.Spec.VolumeClaimTemplates)
	p.events(events)
}

func (p *page) claimTemplates(claims []corev1.PersistentVolumeClaim) {
	if len(claims) == 0 {
		p.line("Volume Claims", "<none>")
		return
	}
	p.head("Volume Claims")
	p.under(func() {
		for i := range claims {
			c := &claims[i]
			p.line("Name", "%s", c.Name)
			p.line("StorageClass", "%s", ptr.Deref(c.Spec.StorageClassName, ""))
			p.pairs("Labels", c.Labels)
			p.pairs("Annotations", c.Annotations)
			amount, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]
			capacity := "<default>"
			if ok {
				capacity = amount.String()
			}
			p.line("Capacity", "%s", capacity)
			p.line("Access Modes", "%s", fmt.Sprint(c.Spec.AccessModes))
		}
	})
}

func (p *page) daemonSet(s *replicas, events []core.Event) {
	p.names(&s.ObjectMeta)
	p.line("Selector", "%s", metav1.FormatLabelSelector(s.Spec.Selector))
	p.line("Node-Selector", "%s", labels.FormatLabels(s.Spec.Template.Spec.NodeSelector))
	p.marks(&s.ObjectMeta)
	for _, count := range []struct {
		label string
		n     int32
	}{
		{"Desired Number of Nodes Scheduled", s.Status.DesiredNumberScheduled},
		{"Current Number of Nodes Scheduled", s.Status.CurrentNumberScheduled},
		{"Number of Nodes Scheduled with Up-to-date Pods", s.Status.UpdatedNumberScheduled},
		{"Number of Nodes Scheduled with Available Pods", s.Status.NumberAvailable},
		{"Number of Nodes Misscheduled", s.Status.NumberMisscheduled},
	} {
		p.text("%s: %d", count.label, count.n)
	}
	p.phases()
	p.template(&s.Spec.Template)
	p.events(events)
}

func (p *page) replicaSet(s *replicas, events []core.Event) {
	p.replicated(&s.ObjectMeta, metav1.FormatLabelSelector(s.Spec.Selector), ptr.Deref(s.Spec.Replicas, 1), s.Status.Replicas)
	p.template(&s.Spec.Template)
	p.reasons(s.Status.Conditions)
	p.events(events)
}

// replicated is what replica sets and replication controllers have alike.
func (p *page) replicated(meta *metav1.ObjectMeta, selector string, asked, has int32) {
	p.names(meta)
	p.line("Selector", "%s", selector)
	p.marks(meta)
	p.controlledBy(meta)
	p.line("Replicas", "%d current / %d desired", has, asked)
	p.phases()
}

// reasons are the conditions of a workload.
func (p *page) reasons(all []condition) {
	conditions(p, all, []string{"Type\tStatus\tReason", "----\t------\t------"}, func(c condition) string {
		return fmt.Sprintf("%s \t%s\t%s", c.Type, c.Status, c.Reason)
	})
}

func (p *page) replicationController(c *corev1.ReplicationController, events []core.Event) {
	p.replicated(&c.ObjectMeta, labels.FormatLabels(c.Spec.Selector), ptr.Deref(c.Spec.Replicas, 1), c.Status.Replicas)
	if c.Spec.Template == nil {
		p.line("Pod Template", "<unset>")
	} else {
		p.template(c.Spec.Template)
	}
	var reasons []condition
	for _, each := range c.Status.Conditions {
		reasons = append(reasons, condition{Type: string(each.Type), Status: string(each.Status), Reason: each.Reason})
	}
	p.reasons(reasons)
	p.events(events)
}

// cron is what is read of cron jobs.
type cron struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Schedule                   string  `json:"schedule"`
		TimeZone                   *string `json:"timeZone"`
		ConcurrencyPolicy          string  `json:"concurrencyPolicy"`
		Suspend                    *bool   `json:"suspend"`
		SuccessfulJobsHistoryLimit *int32  `json:"successfulJobsHistoryLimit"`
		FailedJobsHistoryLimit     *int32  `json:"failedJobsHistoryLimit"`
		StartingDeadlineSeconds    *int64  `json:"startingDeadlineSeconds"`
		JobTemplate                struct {
			Spec struct {
				Selector              *metav1.LabelSelector  `json:"selector"`
				Parallelism           *int32                 `json:"parallelism"`
				Completions           *int32                 `json:"completions"`
				ActiveDeadlineSeconds *int64                 `json:"activeDeadlineSeconds"`
				Template              corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		} `json:"jobTemplate"`
	} `json:"spec"`
	Status struct {
		Active           []corev1.ObjectReference `json:"active"`
		LastScheduleTime *metav1.Time             `json:"lastScheduleTime"`
	} `json:"status"`
}

// formatNumber formats a number that may be left out.
func formatNumber[T any](n *T, unit string) string {
	if n == nil {
		return "<unset>"
	}
	return fmt.Sprint(*n) + unit
}

// formatBool formats a boolean in the words that some layouts use.
func formatBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

func (p *page) cronJob(c *cron, events []core.Event) {
	s, job := &c.Spec, &c.Spec.JobTemplate.Spec
	p.names(&c.ObjectMeta)
	p.marks(&c.ObjectMeta)
	p.line("Schedule", "%s", s.Schedule)
	p.line("Concurrency Policy", "%s", s.ConcurrencyPolicy)
	p.line("Suspend", "%s", formatBool(ptr.Deref(s.Suspend, false)))
	p.line("Time Zone", "%s", formatNumber(s.TimeZone, ""))
	p.line("Successful Job History Limit", "%s", formatNumber(s.SuccessfulJobsHistoryLimit, ""))
	p.line("Failed Job History Limit", "%s", formatNumber(s.FailedJobsHistoryLimit, ""))
	p.line("Starting Deadline Seconds", "%s", formatNumber(s.StartingDeadlineSeconds, "s"))
	selector := "<unset>"
	if job.Selector != nil {
		selector = metav1.FormatLabelSelector(job.Selector)
	}
	p.line("Selector", "%s", selector)
	p.line("Parallelism", "%s", formatNumber(job.Parallelism, ""))
	p.line("Completions", "%s", formatNumber(job.Completions, ""))
	if job.ActiveDeadlineSeconds != nil {
		p.line("Active Deadline Seconds", "%ds", *job.ActiveDeadlineSeconds)
	}
	p.template(&job.Template)
	last := "<unset>"
	if c.Status.LastScheduleTime != nil {
		last = c.Status.LastScheduleTime.UTC().Format(timeFormat)
	}
	p.line("Last Schedule Time", "%s", last)
	var active []string
	for _, each := range c.Status.Active {
		active = append(active, each.Name)
	}
	p.line("Active Jobs", "%s", cmp.Or(strings.Join(active, ", "), "<none>"))
	p.events(events)
}
