package pod

import (
	"sync"
	"sync/atomic"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// setDefaults fills in what the user left out, as upstream does. It also runs
// on stored pods, so it must be idempotent.
func setDefaults(pod *core.Pod) {
	spec := &pod.Spec
	defaultSpec(spec)
	defaultPointer(&spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	if *spec.TerminationGracePeriodSeconds < 0 {
		spec.TerminationGracePeriodSeconds = new(int64(1)) // as kubelets interpret it
	}
	for i := range spec.InitContainers {
		portsOnHost(&spec.InitContainers[i], spec.HostNetwork)
		requestsFromLimits(&spec.InitContainers[i].Resources)
	}
	for i := range spec.Containers {
		portsOnHost(&spec.Containers[i], spec.HostNetwork)
		requestsFromLimits(&spec.Containers[i].Resources)
	}
	if r := spec.Resources; r != nil {
		check.RoundUpQuantities(r.Limits, r.Requests)
	}
}

// defaultSpec is common to pods and pod templates.
func defaultSpec(spec *core.PodSpec) {
	defaultTo(&spec.DNSPolicy, corev1.DNSClusterFirst)
	defaultTo(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	defaultTo(&spec.SchedulerName, core.DefaultSchedulerName)
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	defaultPointer(&spec.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))

	// Two names of one field: the old one is kept for old clients.
	defaultTo(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName

	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		defaultContainer(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		defaultContainer(&spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		defaultContainer((*core.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	check.RoundUpQuantities(spec.Overhead)
}

// portsOnHost gives a pod in the host network its ports on the host.
func portsOnHost(c *core.Container, hostNetwork bool) {
	for i := range c.Ports {
		if port := &c.Ports[i]; hostNetwork && port.HostPort == 0 {
			port.HostPort = port.ContainerPort
		}
	}
}

func defaultContainer(c *core.Container) {
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = pullPolicy(c.Image)
	}
	defaultTo(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	defaultTo(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		defaultTo(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			if from.FieldRef != nil {
				defaultTo(&from.FieldRef.APIVersion, "v1")
			}
			if from.FileKeyRef != nil {
				defaultPointer(&from.FileKeyRef.Optional, false)
			}
		}
	}
	defaultProbe(c.LivenessProbe)
	defaultProbe(c.ReadinessProbe)
	defaultProbe(c.StartupProbe)
	if c.Lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if handler != nil {
				defaultHTTPGet(handler.HTTPGet)
			}
		}
	}
	check.RoundUpQuantities(c.Resources.Limits, c.Resources.Requests)
}

// pullPolicy is Always for images whose tag is latest or missing. An image with
// a digest and no tag never changes, so it need not be pulled again.
func pullPolicy(image string) corev1.PullPolicy {
	if known, ok := knownPolicies.Load(image); ok {
		return known.(corev1.PullPolicy)
	}
	policy := findPullPolicy(image)
	if len(image) > maxKnownImage {
		return policy
	}
	if countPolicies.Add(1) > maxPolicies {
		knownPolicies.Clear()
		countPolicies.Store(1)
	}
	knownPolicies.Store(image, policy)
	return policy
}

// Parsing a reference takes as long as all other defaulting, and a cluster has
// few images for its many pods.
var (
	knownPolicies sync.Map // by image
	countPolicies atomic.Int64
)

// Bounds on the cache.
const (
	maxPolicies   = 1000
	maxKnownImage = 256
)

func findPullPolicy(image string) corev1.PullPolicy {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return corev1.PullIfNotPresent // validation reports bad images
	}
	if tagged, ok := named.(reference.Tagged); ok && tagged.Tag() == "latest" || reference.IsNameOnly(named) {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	defaultTo(&p.TimeoutSeconds, 1)
	defaultTo(&p.PeriodSeconds, 10)
	defaultTo(&p.SuccessThreshold, 1)
	defaultTo(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		defaultPointer(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(get *corev1.HTTPGetAction) {
	if get == nil {
		return
	}
	defaultTo(&get.Path, "/")
	defaultTo(&get.Scheme, corev1.URISchemeHTTP)
}

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func defaultPointer[T any](field **T, value T) {
	if *field == nil {
		*field = new(value)
	}
}
