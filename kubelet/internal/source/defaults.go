package source

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// setDefaults fills in the API server's defaults, for pods that never passed
// through it (Kubernetes API, "Pod v1 core").
func setDefaults(spec *corev1.PodSpec) {
	orDefault(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	orDefault(&spec.DNSPolicy, corev1.DNSClusterFirst)
	orDefault(&spec.SchedulerName, corev1.DefaultSchedulerName)
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
	} else if *spec.TerminationGracePeriodSeconds < 0 {
		spec.TerminationGracePeriodSeconds = new(int64(1))
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = new(corev1.DefaultEnableServiceLinks)
	}
	for c := range core.Containers(spec) {
		defaultContainer(c, spec.HostNetwork)
	}
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
}

func defaultContainer(c *corev1.Container, hostNetwork bool) {
	orDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	orDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	policy := corev1.PullIfNotPresent
	if latest(c.Image) {
		policy = corev1.PullAlways
	}
	orDefault(&c.ImagePullPolicy, policy)
	for i := range c.Ports {
		orDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
		if hostNetwork && c.Ports[i].HostPort == 0 {
			c.Ports[i].HostPort = c.Ports[i].ContainerPort
		}
	}
	for name, limit := range c.Resources.Limits {
		if _, ok := c.Resources.Requests[name]; ok {
			continue
		}
		if c.Resources.Requests == nil {
			c.Resources.Requests = corev1.ResourceList{}
		}
		c.Resources.Requests[name] = limit.DeepCopy()
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			orDefault(&from.FieldRef.APIVersion, "v1")
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil {
			defaultProbe(probe)
		}
	}
}

// latest says that an image reference names no version, or the tag latest.
func latest(image string) bool {
	if strings.Contains(image, "@") {
		return false
	}
	name := image[strings.LastIndex(image, "/")+1:]
	_, tag, tagged := strings.Cut(name, ":")
	return !tagged || tag == "latest"
}

func defaultProbe(p *corev1.Probe) {
	orDefault(&p.TimeoutSeconds, 1)
	orDefault(&p.PeriodSeconds, 10)
	orDefault(&p.SuccessThreshold, 1)
	orDefault(&p.FailureThreshold, 3)
	if p.HTTPGet != nil {
		orDefault(&p.HTTPGet.Path, "/")
		orDefault(&p.HTTPGet.Scheme, corev1.URISchemeHTTP)
	}
	if p.GRPC != nil && p.GRPC.Service == nil {
		p.GRPC.Service = new("")
	}
}

func defaultVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.HostPath != nil && v.HostPath.Type == nil {
		v.HostPath.Type = new(corev1.HostPathUnset)
	}
	if v.DownwardAPI != nil {
		if v.DownwardAPI.DefaultMode == nil {
			v.DownwardAPI.DefaultMode = new(corev1.DownwardAPIVolumeSourceDefaultMode)
		}
		defaultFields(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		if v.Projected.DefaultMode == nil {
			v.Projected.DefaultMode = new(corev1.ProjectedVolumeSourceDefaultMode)
		}
		for _, source := range v.Projected.Sources {
			if source.DownwardAPI != nil {
				defaultFields(source.DownwardAPI.Items)
			}
		}
	}
}

func defaultFields(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		if ref := files[i].FieldRef; ref != nil {
			orDefault(&ref.APIVersion, "v1")
		}
	}
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
