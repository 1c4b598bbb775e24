package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// other is something that upstream's kubelet can be told and this one has no
// use for, as a flag, a field of the file, or both.
type other struct {
	flag, field string
	// values describe what this kubelet does anyway; with none, any will do,
	// since nothing here is bounded or looked for that way. All others are
	// refused by name.
	values []string
	// instead says where what is asked for can be had.
	instead string
}

// none is for what can't be had at all: it may be said to be off.
var none = []string{"", "false", "0", "none", "None", "[]", "map[]"}

var others = []other{
	// What bounds requests, and they are bounded otherwise or need no bound.
	{flag: "event-qps", field: "eventRecordQPS"}, {flag: "event-burst", field: "eventBurst"},
	{flag: "kube-api-qps", field: "kubeAPIQPS"}, {flag: "kube-api-burst", field: "kubeAPIBurst"},
	{flag: "registry-qps", field: "registryPullQPS"}, {flag: "registry-burst", field: "registryBurst"},
	{flag: "log-flush-frequency"}, {flag: "housekeeping-interval"}, {field: "cpuManagerReconcilePeriod", flag: "cpu-manager-reconcile-period"},

	// What it does, and does not do otherwise.
	{flag: "kube-api-content-type", field: "contentType", values: []string{"application/json", "application/vnd.kubernetes.protobuf"}},
	{flag: "enable-debugging-handlers", field: "enableDebuggingHandlers", values: []string{"true"}},
	{flag: "enforce-node-allocatable", field: "enforceNodeAllocatable", values: []string{"pods", "[pods]"}},
	{flag: "enable-controller-attach-detach", field: "enableControllerAttachDetach", values: []string{"true"}},
	{flag: "local-storage-capacity-isolation", field: "localStorageCapacityIsolation", values: []string{"true"}},
	{flag: "cpu-cfs-quota", field: "cpuCFSQuota", values: []string{"true"}},
	{flag: "cpu-cfs-quota-period", field: "cpuCFSQuotaPeriod", values: []string{"100ms", "0s"}},
	{flag: "volume-stats-agg-period", field: "volumeStatsAggPeriod", values: []string{"1m", "1m0s", "0s"}},
	{flag: "node-status-max-images", field: "nodeStatusMaxImages", values: []string{"50"}},
	{field: "configMapAndSecretChangeDetectionStrategy", values: []string{"Watch", "Cache"}},
	{flag: "authentication-token-webhook-cache-ttl", values: []string{"2m", "2m0s", "0s"}},
	{flag: "authorization-webhook-cache-authorized-ttl", values: []string{"5m", "5m0s", "0s"}},
	{flag: "authorization-webhook-cache-unauthorized-ttl", values: []string{"30s", "0s"}},
	{flag: "streaming-connection-idle-timeout", field: "streamingConnectionIdleTimeout", values: []string{"4h", "4h0m0s", "0s"}, instead: "the container runtime's stream_idle_timeout says so"},
	{flag: "maximum-dead-containers", values: []string{"-1"}}, {flag: "maximum-dead-containers-per-container", values: []string{"1"}},
	{flag: "minimum-container-ttl-duration", values: []string{"0", "0s"}},
	{flag: "fail-cgroupv1", field: "failCgroupV1", values: []string{"false"}},
	{flag: "oom-score-adj", field: "oomScoreAdj", values: []string{"-999"}, instead: "OOMScoreAdjust= of its unit says so"},
	{flag: "max-open-files", field: "maxOpenFiles", values: []string{"1000000"}, instead: "LimitNOFILE= of its unit says so"},
	{flag: "runtime-cgroups", values: none, instead: "Slice= of the runtime's unit says so"},
	{flag: "kubelet-cgroups", field: "kubeletCgroups", values: none, instead: "Slice= of its unit says so"},
	{flag: "system-cgroups", field: "systemCgroups", values: none},

	// What others do: no iptables rules and no bridge are this kubelet's, volume
	// plugins are not run, and groups of daemons are not enforced.
	{flag: "make-iptables-util-chains", field: "makeIPTablesUtilChains"}, {field: "iptablesMasqueradeBit"}, {field: "iptablesDropBit"},
	{flag: "hairpin-mode", field: "hairpinMode", values: []string{"promiscuous-bridge", "none"}, instead: "the CNI configuration says so"},
	{flag: "volume-plugin-dir", field: "volumePluginDir"},
	{flag: "kube-reserved-cgroup", field: "kubeReservedCgroup"}, {flag: "system-reserved-cgroup", field: "systemReservedCgroup"},

	// What it does not have.
	{flag: "cpu-manager-policy", field: "cpuManagerPolicy", values: none}, {flag: "cpu-manager-policy-options", field: "cpuManagerPolicyOptions", values: none},
	{flag: "memory-manager-policy", field: "memoryManagerPolicy", values: none},
	{flag: "topology-manager-policy", field: "topologyManagerPolicy", values: none}, {flag: "topology-manager-policy-options", field: "topologyManagerPolicyOptions", values: none},
	{flag: "topology-manager-scope", field: "topologyManagerScope", values: []string{"container"}},
	{flag: "reserved-cpus", values: none}, {flag: "reserved-memory", values: none}, {flag: "qos-reserved", values: none},
	{flag: "cloud-provider", values: none}, {flag: "provider-id", values: none},
	{flag: "image-credential-provider-config", values: none, instead: "imagePullSecrets of pods and " + credentials + " have credentials"},
	{flag: "image-credential-provider-bin-dir", values: none},
	{flag: "read-only-port", field: "readOnlyPort", values: none, instead: "--port has all of it, for those who may"},
	{flag: "lock-file", values: none}, {flag: "exit-on-lock-contention", values: none}, {flag: "runonce", values: none},
	{flag: "config-dir", values: none, instead: "--config has all of it"},
	{flag: "protect-kernel-defaults", field: "protectKernelDefaults", values: none},
	{flag: "contention-profiling", values: none}, {flag: "kernel-memcg-notification", values: none}, {flag: "pods-per-core", values: none},
	{flag: "experimental-allocatable-ignore-eviction", values: none}, {flag: "experimental-mounter-path", values: none},
	{flag: "vmodule", values: none}, {flag: "log-json-split-stream", values: none}, {flag: "log-json-info-buffer-size", values: none},
	{flag: "log-text-split-stream", values: none}, {flag: "log-text-info-buffer-size", values: none},
}

const credentials = "config.json in --root-dir"

// check refuses all values but those that say what is anyway.
func (o other) check(value string) error {
	switch {
	case o.values == nil, slices.Contains(o.values, value):
		return nil
	case o.instead != "":
		return fmt.Errorf("not supported by this kubelet: %s", o.instead)
	case len(o.values) > 0 && o.values[0] != "":
		return fmt.Errorf("not supported by this kubelet, only %s is", o.values[0])
	}
	return fmt.Errorf("not supported by this kubelet")
}

// addOthers adds upstream's flags for that; help does not show them.
func addOthers(fs *pflag.FlagSet) {
	for _, o := range others {
		if o.flag == "" {
			continue
		}
		flag := fs.VarPF(otherFlag(o), o.flag, "", "")
		flag.Hidden = true
		if slices.Contains(o.values, "true") || slices.Contains(switches, o.flag) {
			flag.NoOptDefVal = "true"
		}
	}
}

// switches are those that stand without a value, for true.
var switches = []string{
	"make-iptables-util-chains", "fail-cgroupv1", "protect-kernel-defaults", "exit-on-lock-contention", "runonce", "contention-profiling",
	"kernel-memcg-notification", "experimental-allocatable-ignore-eviction", "log-json-split-stream", "log-text-split-stream",
}

type otherFlag other

func (otherFlag) String() string           { return "" }
func (otherFlag) Type() string             { return "value" }
func (f otherFlag) Set(value string) error { return other(f).check(value) }

// checkDuration does the same for a field that is part of another.
func checkDuration(flag string, d metav1.Duration) error {
	at := slices.IndexFunc(others, func(o other) bool { return o.flag == flag })
	if err := others[at].check(d.Duration.String()); err != nil {
		return fmt.Errorf("%s=%s: %w", flag, d.Duration, err)
	}
	return nil
}

// checkField does the same for a field of the file.
func checkField(name string, value reflect.Value) error {
	at := slices.IndexFunc(others, func(o other) bool { return o.field == name })
	if at < 0 {
		return fmt.Errorf("not supported by this kubelet")
	}
	for value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	text := fmt.Sprint(value.Interface())
	if d, ok := value.Interface().(metav1.Duration); ok {
		text = d.Duration.String()
	}
	return others[at].check(strings.TrimSpace(text))
}
