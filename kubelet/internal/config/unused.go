package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/daemon"
)

// unused are the settings of upstream's kubelet that have no effect here, as
// flags, as fields of the file, or both.
var unused = []daemon.Unused{
	// Limits on requests, which are limited in another way or need no limit.
	{Flag: "event-qps", Number: true, Field: "eventRecordQPS", Why: notHeldBack},
	{Flag: "event-burst", Number: true, Field: "eventBurst", Why: notHeldBack},
	{Flag: "kube-api-qps", Number: true, Field: "kubeAPIQPS", Why: notHeldBack},
	{Flag: "kube-api-burst", Number: true, Field: "kubeAPIBurst", Why: notHeldBack},
	{Flag: "registry-qps", Number: true, Field: "registryPullQPS", Why: notHeldBack},
	{Flag: "registry-burst", Number: true, Field: "registryBurst", Why: notHeldBack},
	{Flag: "housekeeping-interval", Why: "it is always two seconds"},
	{Flag: "cpu-manager-reconcile-period", Field: "cpuManagerReconcilePeriod", Why: sharedCPUs},

	// What it always does.
	{Flag: "kube-api-content-type", Field: "contentType", Values: []string{"application/json", "application/vnd.kubernetes.protobuf"}},
	{Flag: "enable-controller-attach-detach", Switch: true, Field: "enableControllerAttachDetach", Values: []string{"true"}},
	{Flag: "streaming-connection-idle-timeout", Field: "streamingConnectionIdleTimeout",
		Why: "set the container runtime's stream_idle_timeout instead, which is what counts with upstream's kubelet, too"},
	{Flag: "maximum-dead-containers", Values: []string{"-1"}}, {Flag: "maximum-dead-containers-per-container", Values: []string{"1"}},
	{Flag: "minimum-container-ttl-duration", Values: []string{"0", "0s"}},
	{Flag: "runtime-cgroups", Why: "statistics are taken from the cgroup that the runtime is in"},

	// What others do: this kubelet marks no packets for others and has no bridge, and runs
	// no volume plugins.
	{Field: "iptablesMasqueradeBit", Why: noRules}, {Field: "iptablesDropBit", Why: noRules},
	{Flag: "hairpin-mode", Field: "hairpinMode", Values: []string{"promiscuous-bridge", "hairpin-veth", "none"},
		Why: "set it in the CNI configuration instead"},
	{Flag: "volume-plugin-dir", Field: "volumePluginDir", Why: "FlexVolume plugins are not supported"},

	// What it does not have.
	{Flag: "container-runtime", Values: []string{"remote"}, Why: otherRuntimes},
	{Flag: "docker-endpoint", Values: daemon.Off, Why: otherRuntimes},
	{Flag: "network-plugin", Values: []string{"cni"}, Why: "the runtime calls the CNI plugins"},
	{Flag: "cpu-manager-policy", Field: "cpuManagerPolicy", Values: daemon.Off, Why: sharedCPUs},
	{Flag: "cpu-manager-policy-options", Field: "cpuManagerPolicyOptions", Values: daemon.Off},
	{Flag: "memory-manager-policy", Field: "memoryManagerPolicy", Values: daemon.Off},
	{Flag: "topology-manager-policy", Field: "topologyManagerPolicy", Values: daemon.Off},
	{Flag: "topology-manager-policy-options", Field: "topologyManagerPolicyOptions", Values: daemon.Off},
	{Flag: "topology-manager-scope", Field: "topologyManagerScope", Values: []string{"container"}},
	{Flag: "reserved-memory", Values: daemon.Off}, {Flag: "qos-reserved", Values: daemon.Off},
	{Flag: "lock-file", Values: daemon.Off}, {Flag: "exit-on-lock-contention", Switch: true, Values: daemon.Off},
	{Flag: "runonce", Switch: true, Values: daemon.Off},
	{Flag: "kernel-memcg-notification", Switch: true, Values: daemon.Off},
	{Flag: "experimental-allocatable-ignore-eviction", Switch: true, Values: daemon.Off},
	{Flag: "experimental-mounter-path", Values: daemon.Off},
}

const (
	notHeldBack   = "this program does not limit its own request rate"
	sharedCPUs    = "CPUs are never assigned exclusively to one container"
	otherRuntimes = "runtimes speak CRI at --container-runtime-endpoint; Docker needs cri-dockerd"
	noRules       = "this kubelet does not mark packets"
)

// checkField refuses unsupported values of a field of the file.
func checkField(name string, value reflect.Value) error {
	at := slices.IndexFunc(unused, func(u daemon.Unused) bool { return u.Field == name })
	if at < 0 {
		return errors.New("not supported")
	}
	for value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	text := fmt.Sprint(value.Interface())
	if d, ok := value.Interface().(metav1.Duration); ok {
		text = d.Duration.String()
	}
	return unused[at].Check(strings.TrimSpace(text))
}
