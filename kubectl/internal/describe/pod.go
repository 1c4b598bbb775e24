package describe

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

const timeFormat = time.RFC1123Z

// Pod describes a pod.
func Pod(w io.Writer, pod *core.Pod, events []core.Event, now time.Time) error {
	p := newPage(w, now)
	p.pod = &pod.ObjectMeta
	p.podHead(pod)
	if len(pod.Spec.InitContainers) > 0 {
		p.containers("Init Containers", pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	}
	p.containers("Containers", pod.Spec.Containers, pod.Status.ContainerStatuses)
	if len(pod.Spec.EphemeralContainers) > 0 {
		var plain []core.Container
		for i := range pod.Spec.EphemeralContainers {
			plain = append(plain, core.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
		}
		p.containers("Ephemeral Containers", plain, pod.Status.EphemeralContainerStatuses)
	}
	p.readinessGates(pod)
	p.podConditions(pod)
	p.volumes(pod.Spec.Volumes)
	if pod.Status.QOSClass != "" {
		p.line("QoS Class", "%s", pod.Status.QOSClass)
	}
	p.pairs("Node-Selectors", pod.Spec.NodeSelector)
	p.tolerations(pod.Spec.Tolerations)
	p.spread(pod.Spec.TopologySpreadConstraints)
	p.schedulingGroup(pod.Spec.SchedulingGroup)
	p.events(events)
	return p.done()
}

func (p *page) podHead(pod *core.Pod) {
	p.line("Name", "%s", pod.Name)
	p.line("Namespace", "%s", pod.Namespace)
	if pod.Spec.Priority != nil {
		p.line("Priority", "%d", *pod.Spec.Priority)
	}
	if pod.Spec.PriorityClassName != "" {
		p.line("Priority Class Name", "%s", pod.Spec.PriorityClassName)
	}
	if class := ptr.Deref(pod.Spec.RuntimeClassName, ""); class != "" {
		p.line("Runtime Class Name", "%s", class)
	}
	p.line("Service Account", "%s", pod.Spec.ServiceAccountName)
	if pod.Spec.NodeName == "" {
		p.line("Node", "<none>")
	} else {
		p.line("Node", "%s/%s", pod.Spec.NodeName, pod.Status.HostIP)
	}
	if pod.Status.StartTime != nil {
		p.line("Start Time", "%s", pod.Status.StartTime.Format(timeFormat))
	}
	p.marks(&pod.ObjectMeta)
	p.podState(pod)
	if pod.Spec.SecurityContext != nil {
		p.seccomp(pod.Spec.SecurityContext.SeccompProfile)
	}
	p.line("IP", "%s", pod.Status.PodIP)
	if len(pod.Status.PodIPs) == 0 {
		p.line("IPs", "<none>")
	} else {
		p.head("IPs")
		for _, ip := range pod.Status.PodIPs {
			p.under(func() { p.line("IP", "%s", ip.IP) })
		}
	}
	p.controlledBy(&pod.ObjectMeta)
	if pod.Status.NominatedNodeName != "" {
		p.line("NominatedNodeName", "%s", pod.Status.NominatedNodeName)
	}
	if pod.Spec.Resources != nil { // of the pod as a whole
		p.head("Resources")
		p.under(func() {
			p.amounts("Limits", pod.Spec.Resources.Limits)
			p.amounts("Requests", pod.Spec.Resources.Requests)
		})
	}
}

// podState says how far a pod is, and why it is no further.
func (p *page) podState(pod *core.Pod) {
	if pod.DeletionTimestamp != nil && !core.Ended(pod.Status.Phase) {
		p.line("Status", "Terminating (lasts %s)", formatAge(pod.DeletionTimestamp.Time, p.now))
		if pod.DeletionGracePeriodSeconds != nil {
			p.line("Termination Grace Period", "%ds", *pod.DeletionGracePeriodSeconds)
		}
	} else {
		p.line("Status", "%s", pod.Status.Phase)
	}
	if pod.Status.Reason != "" {
		p.line("Reason", "%s", pod.Status.Reason)
	}
	if pod.Status.Message != "" {
		p.line("Message", "%s", pod.Status.Message)
	}
}

func (p *page) containers(label string, containers []core.Container, statuses []core.ContainerStatus) {
	p.head(label)
	for i := range containers {
		var status *core.ContainerStatus
		for j := range statuses {
			if statuses[j].Name == containers[i].Name {
				status = &statuses[j]
			}
		}
		p.under(func() {
			p.head(containers[i].Name)
			p.under(func() { p.container(&containers[i], status) })
		})
	}
}

func (p *page) container(c *core.Container, status *core.ContainerStatus) {
	if status != nil {
		p.line("Container ID", "%s", status.ContainerID)
	}
	p.line("Image", "%s", c.Image)
	if status != nil {
		p.line("Image ID", "%s", status.ImageID)
	}
	p.ports(c.Ports)
	if c.SecurityContext != nil {
		p.seccomp(c.SecurityContext.SeccompProfile)
	}
	p.words("Command", c.Command)
	p.words("Args", c.Args)
	if status != nil {
		p.state("State", status.State)
		if status.LastTerminationState.Terminated != nil {
			p.state("Last State", status.LastTerminationState)
		}
		p.line("Ready", "%s", formatBool(status.Ready))
		p.line("Restart Count", "%d", status.RestartCount)
	}
	p.amounts("Limits", c.Resources.Limits)
	p.amounts("Requests", c.Resources.Requests)
	p.probe("Liveness", c.LivenessProbe)
	p.probe("Readiness", c.ReadinessProbe)
	p.probe("Startup", c.StartupProbe)
	p.environment(c)
	p.mounts(c.VolumeMounts)
}

func (p *page) ports(ports []corev1.ContainerPort) {
	var inside, outside []string
	for _, port := range ports {
		named := ""
		if port.Name != "" {
			named = " (" + port.Name + ")"
		}
		inside = append(inside, fmt.Sprintf("%d/%s%s", port.ContainerPort, port.Protocol, named))
		outside = append(outside, fmt.Sprintf("%d/%s%s", port.HostPort, port.Protocol, named))
	}
	label := "Port"
	if len(ports) > 1 {
		label = "Ports"
	}
	if len(ports) == 0 {
		inside, outside = []string{"<none>"}, []string{"<none>"}
	}
	p.line(label, "%s", strings.Join(inside, ", "))
	p.line("Host "+label, "%s", strings.Join(outside, ", "))
}

func (p *page) words(label string, words []string) {
	if len(words) == 0 {
		return
	}
	p.head(label)
	for _, word := range words {
		for line := range strings.SplitSeq(word, "\n") {
			p.under(func() { p.text("%s", line) })
		}
	}
}

func (p *page) state(label string, state corev1.ContainerState) {
	switch {
	case state.Running != nil:
		p.line(label, "Running")
		p.under(func() { p.line("Started", "%s", state.Running.StartedAt.Format(timeFormat)) })
	case state.Waiting != nil:
		p.line(label, "Waiting")
		if state.Waiting.Reason != "" {
			p.under(func() { p.line("Reason", "%s", state.Waiting.Reason) })
		}
	case state.Terminated != nil:
		t := state.Terminated
		p.line(label, "Terminated")
		p.under(func() {
			if t.Reason != "" {
				p.line("Reason", "%s", t.Reason)
			}
			if t.Message != "" {
				p.line("Message", "%s", t.Message)
			}
			p.line("Exit Code", "%d", t.ExitCode)
			if t.Signal > 0 {
				p.line("Signal", "%d", t.Signal)
			}
			p.line("Started", "%s", t.StartedAt.Format(timeFormat))
			p.line("Finished", "%s", t.FinishedAt.Format(timeFormat))
		})
	default:
		p.line(label, "Waiting")
	}
}

func (p *page) amounts(label string, list corev1.ResourceList) {
	if len(list) == 0 {
		return
	}
	p.head(label)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		amount := list[name]
		p.under(func() { p.line(string(name), "%s", amount.String()) })
	}
}

func (p *page) probe(label string, probe *corev1.Probe) {
	if probe == nil {
		return
	}
	how := "unknown"
	switch {
	case probe.Exec != nil:
		how = fmt.Sprintf("exec %v", probe.Exec.Command)
	case probe.HTTPGet != nil:
		scheme := strings.ToLower(string(probe.HTTPGet.Scheme))
		how = fmt.Sprintf("http-get %s://%s:%s%s", scheme, probe.HTTPGet.Host, probe.HTTPGet.Port.String(), probe.HTTPGet.Path)
	case probe.TCPSocket != nil:
		how = fmt.Sprintf("tcp-socket %s:%s", probe.TCPSocket.Host, probe.TCPSocket.Port.String())
	case probe.GRPC != nil:
		how = fmt.Sprintf("grpc <pod>:%d %s", probe.GRPC.Port, ptr.Deref(probe.GRPC.Service, ""))
	}
	p.line(label, "%s delay=%ds timeout=%ds period=%ds successThreshold=%d failureThreshold=%d",
		how, probe.InitialDelaySeconds, probe.TimeoutSeconds, probe.PeriodSeconds, probe.SuccessThreshold, probe.FailureThreshold)
}

func (p *page) mounts(mounts []corev1.VolumeMount) {
	if len(mounts) == 0 {
		p.line("Mounts", "<none>")
		return
	}
	p.head("Mounts")
	mounts = slices.Clone(mounts)
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
	for _, m := range mounts {
		flags := "rw"
		if m.ReadOnly {
			flags = "ro"
		}
		if m.SubPath != "" {
			flags += ",path=" + strconv.Quote(m.SubPath)
		}
		p.under(func() { p.text("%s from %s (%s)", m.MountPath, m.Name, flags) })
	}
}

// readinessGates are the conditions that a pod waits for besides its own.
func (p *page) readinessGates(pod *core.Pod) {
	if len(pod.Spec.ReadinessGates) == 0 {
		return
	}
	p.head("Readiness Gates")
	p.under(func() {
		p.text("Type\tStatus")
		for _, gate := range pod.Spec.ReadinessGates {
			status := "<none>"
			for _, c := range pod.Status.Conditions {
				if c.Type == gate.ConditionType {
					status = string(c.Status)
				}
			}
			p.text("%s \t%s ", gate.ConditionType, status)
		}
	})
}

func (p *page) seccomp(profile *corev1.SeccompProfile) {
	if profile == nil {
		return
	}
	p.line("SeccompProfile", "%s", profile.Type)
	if profile.LocalhostProfile != nil {
		p.line("LocalhostProfile", "%s", *profile.LocalhostProfile)
	}
}

func (p *page) podConditions(pod *core.Pod) {
	conditions(p, pod.Status.Conditions, []string{"Type\tStatus"}, func(c corev1.PodCondition) string {
		return fmt.Sprintf("%s \t%s ", c.Type, c.Status)
	})
}
