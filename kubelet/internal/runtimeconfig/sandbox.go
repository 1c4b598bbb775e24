package runtimeconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/hosts"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// Sandbox makes the configuration of a pod's sandbox, under a runtime handler; "" is
// the default one. attempt counts the sandboxes of the pod.
func (m *Maker) Sandbox(pod *core.Pod, attempt uint32, handler string) (*runtimeapi.PodSandboxConfig, error) {
	linux, err := m.linuxSandbox(pod)
	if err != nil {
		return nil, err
	}
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{
			Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID), Attempt: attempt,
		},
		LogDirectory: podfiles.LogDirectory(m.PodLogsDir, pod.Namespace, pod.Name, pod.UID),
		Labels:       runtimestate.SandboxLabels(pod),
		Annotations:  pod.Annotations,
		PortMappings: portMappings(pod),
		Linux:        linux,
	}
	if m.DNS != nil {
		if config.DnsConfig, err = m.DNS(pod); err != nil {
			return nil, fmt.Errorf("DNS configuration: %w", err)
		}
	}
	if !pod.Spec.HostNetwork {
		if config.Hostname, err = hosts.Name(pod, m.ClusterDomain); err != nil {
			return nil, err
		}
	}
	if linux.SecurityContext.NamespaceOptions.UsernsOptions, err = m.userNamespace(pod, handler); err != nil {
		return nil, err
	}
	return config, nil
}

func portMappings(pod *core.Pod) []*runtimeapi.PortMapping {
	var mappings []*runtimeapi.PortMapping
	for c := range core.LastingContainers(&pod.Spec) {
		for _, p := range c.Ports {
			mappings = append(mappings, &runtimeapi.PortMapping{
				Protocol: protocol(p.Protocol), ContainerPort: p.ContainerPort, HostPort: p.HostPort, HostIp: p.HostIP,
			})
		}
	}
	return mappings
}

func protocol(p corev1.Protocol) runtimeapi.Protocol {
	switch p {
	case corev1.ProtocolUDP:
		return runtimeapi.Protocol_UDP
	case corev1.ProtocolSCTP:
		return runtimeapi.Protocol_SCTP
	}
	return runtimeapi.Protocol_TCP
}

func (m *Maker) linuxSandbox(pod *core.Pod) (*runtimeapi.LinuxPodSandboxConfig, error) {
	security := &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions: namespaces(pod),
		Privileged:       anyPrivileged(pod),
		Seccomp:          m.sandboxSeccomp(pod),
	}
	config := &runtimeapi.LinuxPodSandboxConfig{
		SecurityContext: security,
		Resources:       m.sandboxResources(pod),
	}
	if len(pod.Spec.Overhead) > 0 {
		config.Overhead = m.linuxResources(pod.Spec.Overhead, pod.Spec.Overhead)
	}
	if m.CgroupParent != nil {
		config.CgroupParent = m.CgroupParent(pod)
	}
	sc := pod.Spec.SecurityContext
	if sc == nil {
		return config, nil
	}
	security.RunAsUser = int64Value(sc.RunAsUser)
	security.RunAsGroup = int64Value(sc.RunAsGroup)
	security.SupplementalGroups = m.podGroups(pod)
	security.SupplementalGroupsPolicy = groupsPolicy(sc)
	if security.SupplementalGroupsPolicy == runtimeapi.SupplementalGroupsPolicy_Strict && !m.ReportsUsers() {
		return nil, errors.New("supplementalGroupsPolicy: Strict is not supported by the container runtime")
	}
	security.SelinuxOptions = selinux(sc.SELinuxOptions)
	if len(sc.Sysctls) > 0 {
		config.Sysctls = map[string]string{}
		for _, sysctl := range sc.Sysctls {
			config.Sysctls[strings.ReplaceAll(sysctl.Name, "/", ".")] = sysctl.Value
		}
	}
	return config, nil
}

// sandboxSeccomp is the system call filter of the sandbox's own process, which
// does nothing but wait. Making one takes the runtime more than a tenth of the
// whole way to a running container, so there is one only where it protects:
// where containers see the process, so that one of them might use it to get
// around its own filter, or where the pod or the whole node is to have one.
func (m *Maker) sandboxSeccomp(pod *core.Pod) *runtimeapi.SecurityProfile {
	sc := pod.Spec.SecurityContext
	asked := sc != nil && sc.SeccompProfile != nil && sc.SeccompProfile.Type != corev1.SeccompProfileTypeUnconfined
	if m.SeccompDefault || asked || pod.Spec.HostPID || ptr.Deref(pod.Spec.ShareProcessNamespace, false) {
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
}

// namespaces are those that the pod's containers share, with the host or with
// each other.
func namespaces(pod *core.Pod) *runtimeapi.NamespaceOption {
	o := &runtimeapi.NamespaceOption{
		Network: runtimeapi.NamespaceMode_POD,
		Ipc:     runtimeapi.NamespaceMode_POD,
		Pid:     runtimeapi.NamespaceMode_CONTAINER,
	}
	if pod.Spec.HostNetwork {
		o.Network = runtimeapi.NamespaceMode_NODE
	}
	if pod.Spec.HostIPC {
		o.Ipc = runtimeapi.NamespaceMode_NODE
	}
	switch {
	case pod.Spec.HostPID:
		o.Pid = runtimeapi.NamespaceMode_NODE
	case pod.Spec.ShareProcessNamespace != nil && *pod.Spec.ShareProcessNamespace:
		o.Pid = runtimeapi.NamespaceMode_POD
	}
	return o
}

func anyPrivileged(pod *core.Pod) bool {
	privileged := func(c core.Container) bool {
		return c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
	}
	return slices.ContainsFunc(pod.Spec.Containers, privileged) || slices.ContainsFunc(pod.Spec.InitContainers, privileged) ||
		slices.ContainsFunc(pod.Spec.EphemeralContainers, func(e corev1.EphemeralContainer) bool {
			return privileged(core.Container(e.EphemeralContainerCommon))
		})
}

// sandboxResources is the sum of the pod's containers' resources, for runtimes
// that size a virtual machine by it.
func (m *Maker) sandboxResources(pod *core.Pod) *runtimeapi.LinuxContainerResources {
	requests, limits := podTotals(pod)
	return m.linuxResources(requests, limits)
}
