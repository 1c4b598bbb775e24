package describe

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

const timeFormat = time.RFC1123Z

// Pod describes a pod.
func Pod(w io.Writer, pod *core.Pod, events []core.Event, now time.Time) error {
	p := newPage(w, now)
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
	p.podConditions(pod)
	p.volumes(pod.Spec.Volumes)
	if pod.Status.QOSClass != "" {
		p.line("QoS Class", "%s", pod.Status.QOSClass)
	}
	p.pairs("Node-Selectors", pod.Spec.NodeSelector)
	p.tolerations(pod.Spec.Tolerations)
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
	p.line("Service Account", "%s", pod.Spec.ServiceAccountName)
	if pod.Spec.NodeName == "" {
		p.line("Node", "<none>")
	} else {
		p.line("Node", "%s/%s", pod.Spec.NodeName, pod.Status.HostIP)
	}
	if pod.Status.StartTime != nil {
		p.line("Start Time", "%s", pod.Status.StartTime.Format(timeFormat))
	}
	p.pairs("Labels", pod.Labels)
	p.notes("Annotations", pod.Annotations)
	if pod.DeletionTimestamp != nil {
		p.line("Status", "Terminating (lasts %s)", age(pod.DeletionTimestamp.Time, p.now))
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
	p.line("IP", "%s", pod.Status.PodIP)
	if len(pod.Status.PodIPs) == 0 {
		p.line("IPs", "<none>")
	} else {
		p.head("IPs")
		for _, ip := range pod.Status.PodIPs {
			p.under(func() { p.line("IP", "%s", ip.IP) })
		}
	}
	for _, owner := range pod.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			p.line("Controlled By", "%s/%s", owner.Kind, owner.Name)
		}
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
	p.words("Command", c.Command)
	p.words("Args", c.Args)
	if status != nil {
		p.state("State", status.State)
		if status.LastTerminationState.Terminated != nil {
			p.state("Last State", status.LastTerminationState)
		}
		ready := "False"
		if status.Ready {
			ready = "True"
		}
		p.line("Ready", "%s", ready)
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
		inside = append(inside, fmt.Sprintf("%d/%s", port.ContainerPort, port.Protocol))
		outside = append(outside, fmt.Sprintf("%d/%s", port.HostPort, port.Protocol))
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
		for _, line := range strings.Split(word, "\n") {
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
	plain := map[string]string{}
	for name, quantity := range list {
		plain[string(name)] = quantity.String()
	}
	for _, name := range sortedKeys(plain) {
		p.under(func() { p.line(name, "%s", plain[name]) })
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
		how = fmt.Sprintf("grpc <pod>:%d", probe.GRPC.Port)
	}
	p.line(label, "%s delay=%ds timeout=%ds period=%ds #success=%d #failure=%d", how,
		probe.InitialDelaySeconds, probe.TimeoutSeconds, probe.PeriodSeconds, probe.SuccessThreshold, probe.FailureThreshold)
}

func (p *page) environment(c *core.Container) {
	if len(c.EnvFrom) > 0 {
		p.head("Environment Variables from")
		for _, from := range c.EnvFrom {
			switch {
			case from.ConfigMapRef != nil:
				p.under(func() {
					p.text("%s\tConfigMap%s\tOptional: %t", from.ConfigMapRef.Name, prefixed(from.Prefix), isTrue(from.ConfigMapRef.Optional))
				})
			case from.SecretRef != nil:
				p.under(func() {
					p.text("%s\tSecret%s\tOptional: %t", from.SecretRef.Name, prefixed(from.Prefix), isTrue(from.SecretRef.Optional))
				})
			}
		}
	}
	if len(c.Env) == 0 {
		p.line("Environment", "<none>")
		return
	}
	p.head("Environment")
	for _, e := range c.Env {
		p.under(func() { p.line(e.Name, "%s", envValue(e)) })
	}
}

func prefixed(prefix string) string {
	if prefix == "" {
		return ""
	}
	return " with prefix '" + prefix + "'"
}

func isTrue(b *bool) bool { return b != nil && *b }

func envValue(e corev1.EnvVar) string {
	from := e.ValueFrom
	switch {
	case from == nil:
		return e.Value
	case from.FieldRef != nil:
		return fmt.Sprintf("(%s:%s)", from.FieldRef.APIVersion, from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		return fmt.Sprintf("(%s)", from.ResourceFieldRef.Resource)
	case from.SecretKeyRef != nil:
		return fmt.Sprintf("<set to the key '%s' in secret '%s'>\tOptional: %t", from.SecretKeyRef.Key, from.SecretKeyRef.Name, isTrue(from.SecretKeyRef.Optional))
	case from.ConfigMapKeyRef != nil:
		return fmt.Sprintf("<set to the key '%s' of config map '%s'>\tOptional: %t", from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name, isTrue(from.ConfigMapKeyRef.Optional))
	}
	return "<unknown source>"
}

func (p *page) mounts(mounts []corev1.VolumeMount) {
	if len(mounts) == 0 {
		p.line("Mounts", "<none>")
		return
	}
	p.head("Mounts")
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

func (p *page) podConditions(pod *core.Pod) {
	if len(pod.Status.Conditions) == 0 {
		return
	}
	p.head("Conditions")
	p.under(func() {
		p.text("Type\tStatus")
		for _, c := range pod.Status.Conditions {
			p.text("%s \t%s ", c.Type, c.Status)
		}
	})
}

func (p *page) tolerations(tolerations []corev1.Toleration) {
	if len(tolerations) == 0 {
		p.line("Tolerations", "<none>")
		return
	}
	for i, t := range tolerations {
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		if t.Effect != "" {
			text += ":" + string(t.Effect)
		}
		if t.Operator == corev1.TolerationOpExists && t.Value == "" {
			text += " op=Exists"
		}
		if t.TolerationSeconds != nil {
			text += fmt.Sprintf(" for %ds", *t.TolerationSeconds)
		}
		head := strings.Repeat("  ", p.level)
		if i == 0 {
			head += "Tolerations:"
		}
		fmt.Fprintf(p.tabs, "%s\t%s\n", head, text)
	}
}
