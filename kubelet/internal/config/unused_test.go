package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"kctl/kubelet/internal/cgroup"
)

// What kubeadm writes for a kubelet, and the flags that kubeadm and other
// installers set.
const kubeadmFile = header + `
authentication: {anonymous: {enabled: false}, webhook: {cacheTTL: 0s, enabled: true}, x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}, verbosity: 0}
memorySwap: {}
memoryReservationPolicy: None
imagePullCredentialsVerificationPolicy: NeverVerify
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
`

func TestWhatInstallersSayIsTaken(t *testing.T) {
	c, err := load(t, kubeadmFile, "--bootstrap-kubeconfig=/b", "--kubeconfig=/k", "--node-ip=192.0.2.1", "--anonymous-auth=false",
		"--fail-cgroupv1=false", "--read-only-port=0", "--cloud-provider=", "--event-qps=0", "--make-iptables-util-chains", "--enable-server",
		"--volume-plugin-dir=/opt/plugins", "--pod-max-pids=100", "--seccomp-default", "--allowed-unsafe-sysctls=net.core.somaxconn,kernel.msg*",
		"--tls-min-version=VersionTLS13", "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "--enforce-node-allocatable=pods",
		"--image-service-endpoint=unix:///run/containerd/containerd.sock", "--serialize-image-pulls", "--topology-manager-policy=none",
		"--feature-gates=RotateKubeletServerCertificate=true,MemoryQoS=false,NodeSwap=true")
	if err != nil {
		t.Fatal(err)
	}
	if c.PodPidsLimit != 100 || !c.SeccompDefault || len(c.AllowedUnsafeSysctls) != 2 || c.Serving.TLS.MinVersion != "VersionTLS13" || c.Pulls.AtOnce() != 1 ||
		c.Cgroups.Driver != "systemd" {
		t.Errorf("%+v", c)
	}
	if !slices.Contains(c.DeclaredFeatures(), "RestartAllContainersOnContainerExits") {
		t.Errorf("declared %q", c.DeclaredFeatures())
	}
	c, err = load(t,
		header+"seccompDefault: true\nfeatureGates: {ImageVolume: true}\nserializeImagePulls: true\nmaxParallelImagePulls: 1\ntlsMinVersion: VersionTLS13\n",
		"--kubeconfig=/k", "--anonymous-auth")
	if err != nil || !c.SeccompDefault || !c.Serving.AnonymousAuth || c.Serving.TLS.MinVersion != "VersionTLS13" {
		t.Errorf("%+v, %v", c, err)
	}
}

// Gates of what pods ask for by fields may be as the API server's are; so may those of what is there.
func TestGatesOfFields(t *testing.T) {
	for _, gates := range []string{
		"ContainerStopSignals=true", "ContainerStopSignals=false", "EmptyDirVolumeMode=true,AtomicWriteVolumeUserFields=true",
		"PodLogsQuerySplitStreams=true", "TaintTolerationComparisonOperators=true", "KubeletServiceAccountTokenForCredentialProviders=true",
		"NodeLogQuery=true", "CustomCPUCFSQuotaPeriod=true",
	} {
		if _, err := load(t, "", "--kubeconfig=/k", "--feature-gates="+gates); err != nil {
			t.Errorf("%s: %v", gates, err)
		}
	}
	for _, gates := range []string{"ContainerStopSignals=yes", "GRPCContainerProbeTLS=true", "PodsAPI=true", "NodeLogQuery=false"} {
		if _, err := load(t, "", "--kubeconfig=/k", "--feature-gates="+gates); err == nil {
			t.Errorf("%s was taken", gates)
		}
	}
}

// MemoryQoS does what its settings ask for, and for daemons what it always does, unless it is off.
func TestMemoryQoS(t *testing.T) {
	const both = "memoryThrottlingFactor: 0.7\nmemoryReservationPolicy: TieredReservation\n"
	for _, c := range []struct {
		file     string
		want     cgroup.MemoryQoS
		daemons  bool
		refusing string
	}{
		{"", cgroup.MemoryQoS{}, true, ""},
		{"memoryReservationPolicy: None\n", cgroup.MemoryQoS{}, true, ""},
		{both, cgroup.MemoryQoS{ThrottlingFactor: 0.7, Tiered: true}, true, ""},
		{both + "featureGates: {MemoryQoS: true}\n", cgroup.MemoryQoS{ThrottlingFactor: 0.7, Tiered: true}, true, ""},
		{both + "featureGates: {MemoryQoS: false}\n", cgroup.MemoryQoS{}, false, "memoryThrottlingFactor or memoryReservationPolicy needs it"},
		{"memoryThrottlingFactor: 0.9\nfeatureGates: {MemoryQoS: false}\n", cgroup.MemoryQoS{}, false, ""},
	} {
		config, err := load(t, header+c.file, "--kubeconfig=/k")
		if c.refusing != "" {
			if err == nil || !strings.Contains(err.Error(), c.refusing) {
				t.Errorf("%s: %v", c.file, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
		} else if got := config.MemoryQoS(); got != c.want || config.ProtectsDaemons() != c.daemons {
			t.Errorf("%s: %+v, daemons %t", c.file, got, config.ProtectsDaemons())
		}
	}
}

// A gate may be off as long as no setting asks for its feature.
func TestGatesThatNoSettingNeeds(t *testing.T) {
	for setting, gate := range map[string]string{
		"serverTLSBootstrap: true": "RotateKubeletServerCertificate",
		"shutdownGracePeriodByPodPriority: [{priority: 7, shutdownGracePeriodSeconds: 5}]": "GracefulNodeShutdownBasedOnPodPriority",
		"cpuCFSQuotaPeriod: 50ms":                            "CustomCPUCFSQuotaPeriod",
		"crashLoopBackOff: {maxContainerRestartPeriod: 10s}": "KubeletCrashLoopBackOffMax",
	} {
		off := header + "featureGates: {" + gate + ": false}\n"
		if _, err := load(t, off, "--kubeconfig=/k"); err != nil {
			t.Errorf("%s: %v", gate, err)
		}
		if _, err := load(t, header+setting+"\nfeatureGates: {"+gate+": true}\n", "--kubeconfig=/k"); err != nil {
			t.Errorf("%s: %v", setting, err)
		}
		name := setting[:strings.Index(setting, ":")]
		if _, err := load(t, off+setting+"\n", "--kubeconfig=/k"); err == nil || !strings.Contains(err.Error(), gate+"=false: "+name) ||
			strings.Count(err.Error(), gate) != 1 {
			t.Errorf("%s without its gate: error %v", setting, err)
		}
	}
	if _, err := load(t, "", "--kubeconfig=/k", "--feature-gates=RotateKubeletServerCertificate=no"); err == nil {
		t.Error("no is neither true nor false")
	}
}

func TestWhetherTheDiskIsTold(t *testing.T) {
	c, err := load(t, "", "--kubeconfig=/k")
	if err != nil || !c.LocalStorageCapacityIsolation {
		t.Errorf("at first %t, %v", c.LocalStorageCapacityIsolation, err)
	}
	c, err = load(t, header+"localStorageCapacityIsolation: false\n", "--kubeconfig=/k")
	if err != nil || c.LocalStorageCapacityIsolation || *c.Effective().LocalStorageCapacityIsolation {
		t.Errorf("by the file %t, %v", c.LocalStorageCapacityIsolation, err)
	}
	c, err = load(t, "", "--kubeconfig=/k", "--local-storage-capacity-isolation=false")
	if err != nil || c.LocalStorageCapacityIsolation {
		t.Errorf("by the flag %t, %v", c.LocalStorageCapacityIsolation, err)
	}
}

// What upstream's kubelet 1.37 shows at /configz when it was given only a
// kubeconfig.
const upstreamsDefaults = header + `
address: 0.0.0.0
authentication: {anonymous: {enabled: false}, webhook: {cacheTTL: 2m0s, enabled: true}, x509: {}}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 5m0s, cacheUnauthorizedTTL: 30s}}
cgroupDriver: cgroupfs
cgroupsPerQOS: true
configMapAndSecretChangeDetectionStrategy: Watch
containerLogMaxFiles: 5
containerLogMaxSize: 10Mi
containerLogMaxWorkers: 1
containerLogMonitorInterval: 10s
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
contentType: application/vnd.kubernetes.protobuf
cpuCFSQuota: true
cpuCFSQuotaPeriod: 100ms
cpuManagerPolicy: none
cpuManagerReconcilePeriod: 10s
crashLoopBackOff: {maxContainerRestartPeriod: 5m0s}
enableControllerAttachDetach: true
enableDebugFlagsHandler: true
enableDebuggingHandlers: true
enableProfilingHandler: true
enableServer: true
enableSystemLogHandler: true
enableSystemLogQuery: false
enforceNodeAllocatable: [pods]
eventBurst: 100
eventRecordQPS: 50
evictionHard: {imagefs.available: 15%, imagefs.inodesFree: 5%, memory.available: 100Mi, nodefs.available: 10%, nodefs.inodesFree: 5%}
evictionPressureTransitionPeriod: 5m0s
failCgroupV1: true
failSwapOn: true
fileCheckFrequency: 20s
hairpinMode: promiscuous-bridge
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 20s
imageGCHighThresholdPercent: 85
imageGCLowThresholdPercent: 80
imageMaximumGCAge: 0s
imageMinimumGCAge: 2m0s
imagePullCredentialsVerificationPolicy: NeverVerifyPreloadedImages
iptablesDropBit: 15
iptablesMasqueradeBit: 14
kubeAPIBurst: 100
kubeAPIQPS: 50
localStorageCapacityIsolation: true
logging: {flushFrequency: 5s, format: text, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}, verbosity: 0}
makeIPTablesUtilChains: true
maxOpenFiles: 1000000
maxPods: 110
memoryManagerPolicy: None
memoryReservationPolicy: None
memorySwap: {}
memoryThrottlingFactor: 0.9
mergeDefaultEvictionSettings: false
nodeLeaseDurationSeconds: 40
nodeStatusMaxImages: 50
nodeStatusReportFrequency: 5m0s
nodeStatusUpdateFrequency: 10s
oomScoreAdj: -999
podLogsDir: /var/log/pods
podPidsLimit: -1
port: 10250
registerNode: true
registryBurst: 10
registryPullQPS: 5
resolvConf: /etc/resolv.conf
runtimeRequestTimeout: 2m0s
seccompDefault: false
serializeImagePulls: true
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
streamingConnectionIdleTimeout: 4h0m0s
syncFrequency: 1m0s
topologyManagerPolicy: none
topologyManagerScope: container
volumePluginDir: /usr/libexec/kubernetes/kubelet-plugins/volume/exec/
volumeStatsAggPeriod: 1m0s
`

// What other installers and hardening guides write (EKS, GKE, kind, k3s,
// kubespray, CIS), and lists that a program leaves empty.
const installersFields = header + `
cgroupRoot: /kubelet
contentType: application/json
cpuCFSQuota: false
cpuManagerPolicyOptions: {}
defaultPodSysctls: {}
enableContentionProfiling: true
enableDebuggingHandlers: false
enforceNodeAllocatable: []
evictionHard: {nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%}
featureGates: {RotateKubeletServerCertificate: true}
hairpinMode: hairpin-veth
imageGCHighThresholdPercent: 100
kubeReserved: {cpu: 70m, ephemeral-storage: 1Gi, memory: 442Mi}
kubeletCgroups: /system.slice/kubelet.service
memorySwap: {swapBehavior: NoSwap}
memoryThrottlingFactor: 0.8
podsPerCore: 10
preloadedImagesVerificationAllowlist: []
qosReserved: {}
reservedMemory: []
reservedSystemCPUs: 0-1
streamingConnectionIdleTimeout: 5m
tlsCipherSuites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_RSA_WITH_AES_256_GCM_SHA384, TLS_RSA_WITH_AES_128_GCM_SHA256]
tlsCurvePreferences: [29, 23]
topologyManagerPolicyOptions: {}
volumeStatsAggPeriod: 10s
`

// What upstream's node test suite (test/e2e_node) sets besides the defaults, on a machine
// without systemd.
const nodeTestsFields = header + `
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}, x509: {}}
authorization: {mode: AlwaysAllow}
cgroupRoot: /
evictionHard: {memory.available: 250Mi, nodefs.available: 10%, nodefs.inodesFree: 5%}
evictionMinimumReclaim: {nodefs.available: 5%, nodefs.inodesFree: 5%}
evictionPressureTransitionPeriod: 30s
fileCheckFrequency: 10s
kubeletCgroups: /kubelet
podCIDR: 10.100.0.0/24
readOnlyPort: 10255
serializeImagePulls: false
staticPodPath: /work/static-pods
systemCgroups: /system
volumeStatsAggPeriod: 10s
`

func TestUpstreamsConfigurationsAreTaken(t *testing.T) {
	c, err := load(t, upstreamsDefaults, "--kubeconfig=/k")
	if err != nil {
		t.Fatal(err)
	}
	if !c.Cgroups.FailV1 || !c.FailSwapOn || c.Pulls.AtOnce() != 1 || c.Serving.Address != "0.0.0.0" || !c.Allocatable.EnforcesPods() {
		t.Errorf("%+v", c)
	}
	if c, err = load(t, installersFields, "--kubeconfig=/k", "--runtime-cgroups=/system.slice/containerd.service"); err != nil {
		t.Fatal(err)
	}
	if c.Cgroups.CPUCFSQuota || c.Serving.EnableDebuggingHandlers || !c.Serving.EnableContentionProfiling || c.Allocatable.EnforcesPods() ||
		c.Serving.VolumeStatsAggPeriod != 10*time.Second || c.Process.Group != "/system.slice/kubelet.service" {
		t.Errorf("%+v", c)
	}
	if n, err := load(t, nodeTestsFields, "--kubeconfig=/k"); err != nil || n.Serving.ReadOnlyPort != 10255 || n.Process.SystemGroup != "/system" ||
		!n.Serving.AnonymousAuth || n.Serving.AuthorizationMode != "AlwaysAllow" {
		t.Errorf("%+v, %v", n, err)
	}
	if reserved, err := c.Allocatable.Reserved(); err != nil || reserved.Cpu().String() != "2" || reserved.Memory().String() != "442Mi" || c.MaxPodsFor(4) != 40 ||
		c.MaxPodsFor(400) != 110 {
		t.Errorf("%v, %v, %d pods", reserved, err, c.MaxPodsFor(4))
	}
}

func TestWhatUpstreamHasIsRefusedByName(t *testing.T) {
	for flag, want := range map[string]string{
		"--cpu-manager-policy=static":                              "CPUs are never assigned exclusively",
		"--container-runtime=docker":                               "cri-dockerd",
		"--docker-endpoint=unix:///d":                              "cri-dockerd",
		"--network-plugin=kubenet":                                 "the runtime calls the CNI plugins",
		"--cloud-provider=aws":                                     "there is external",
		"--image-credential-provider-config=/c":                    "go together",
		"--config-dir=/nowhere":                                    "no such file",
		"--read-only-port=-1":                                      "is not a port",
		"--maximum-dead-containers=10":                             "the only supported value is -1",
		"--image-service-endpoint=unix:///other":                   "images are the runtime's",
		"--reserved-cpus=one":                                      "strconv",
		"--oom-score-adj=2000":                                     "between -1000 and 1000",
		"--node-status-max-images=-2":                              "not below -1",
		"--tls-min-version=VersionTLS10":                           "only VersionTLS12 and VersionTLS13",
		"--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA":             "unknown or insecure",
		"--allowed-unsafe-sysctls=vm.swappiness":                   "not a pod's own",
		"--feature-gates=NoSuchGate=true":                          "unknown feature gate",
		"--feature-gates=PodsAPI=true":                             "not supported",
		"file memoryThrottlingFactor: 1.5":                         "memoryThrottlingFactor=1.5: it must be greater than 0 and at most 1",
		"file memoryThrottlingFactor: 0":                           "memoryThrottlingFactor: it must be greater than 0 and at most 1",
		"file memoryReservationPolicy: Some":                       "memoryReservationPolicy=\"Some\": there are None and TieredReservation",
		"--feature-gates=ContainerRestartRules=false":              "can't be turned off",
		"--feature-gates=ImageVolume=false":                        "locked to true",
		"file featureGates: {Bogus: true}":                         "unknown feature gate",
		"file memorySwap: {swapBehavior: LimitedSwap}":             "memorySwap: swapBehavior=\"LimitedSwap\": it needs cgroup v2",
		"file reservedMemory: [{numaNode: 0}]":                     "reservedMemory: not supported",
		"file memoryManagerPolicy: Static":                         "memoryManagerPolicy: not supported",
		"file cpuCFSQuotaPeriod: 2s":                               "--cpu-cfs-quota-period=2s: it must be between 1ms and 1s",
		"--cpu-cfs-quota-period=10us":                              "--cpu-cfs-quota-period=10µs: it must be between 1ms and 1s",
		"file serializeImagePulls: true\nmaxParallelImagePulls: 3": "serializeImagePulls must be false",
	} {
		var err error
		if text, isFile := strings.CutPrefix(flag, "file "); isFile {
			_, err = load(t, header+text+"\n", "--kubeconfig=/k")
		} else {
			_, err = load(t, "", "--kubeconfig=/k", flag)
		}
		name, _, _ := strings.Cut(flag, "=")
		if err == nil || !strings.Contains(err.Error(), want) || strings.HasPrefix(flag, "--") && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want %q", flag, err, want)
		}
	}
}

// Every flag of upstream's is known: accepted, or refused by name. The list is
// from kubelet 1.37's help.
func TestUpstreamsFlagsAreKnown(t *testing.T) {
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	New().AddFlags(fs)
	for name := range strings.FieldsSeq(upstreamFlags) {
		if fs.Lookup(name) == nil {
			t.Errorf("--%s is not known", name)
		}
	}
	fields := map[string]bool{"": true}
	file := reflect.TypeFor[kubeletv1beta1.KubeletConfiguration]()
	for i := range file.NumField() {
		name, _, _ := strings.Cut(file.Field(i).Tag.Get("json"), ",")
		fields[name] = true
	}
	for _, o := range unused {
		if !fields[o.Field] {
			t.Errorf("the file has no %s", o.Field)
		}
	}
}

const upstreamFlags = `
address allowed-unsafe-sysctls anonymous-auth authentication-token-webhook authentication-token-webhook-cache-ttl
authorization-mode authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
bootstrap-kubeconfig cert-dir cgroup-driver cgroup-root cgroups-per-qos client-ca-file cloud-provider cluster-dns
cluster-domain config config-dir container-log-max-files container-log-max-size container-runtime-endpoint
contention-profiling cpu-cfs-quota cpu-cfs-quota-period cpu-manager-policy cpu-manager-policy-options
cpu-manager-reconcile-period enable-controller-attach-detach enable-debugging-handlers enable-server
enforce-node-allocatable event-burst event-qps eviction-hard eviction-max-pod-grace-period eviction-minimum-reclaim
eviction-pressure-transition-period eviction-soft eviction-soft-grace-period exit-on-lock-contention
experimental-allocatable-ignore-eviction experimental-mounter-path fail-cgroupv1 fail-swap-on feature-gates
file-check-frequency hairpin-mode healthz-bind-address healthz-port hostname-override housekeeping-interval
http-check-frequency image-credential-provider-bin-dir image-credential-provider-config image-gc-high-threshold
image-gc-low-threshold image-service-endpoint kernel-memcg-notification kube-api-burst kube-api-content-type
kube-api-qps kube-reserved kube-reserved-cgroup kubeconfig kubelet-cgroups local-storage-capacity-isolation lock-file
log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream
logging-format make-iptables-util-chains manifest-url manifest-url-header max-open-files max-pods
maximum-dead-containers maximum-dead-containers-per-container memory-manager-policy minimum-container-ttl-duration
minimum-image-ttl-duration node-ip node-labels node-status-max-images node-status-update-frequency oom-score-adj
pod-cidr pod-manifest-path pod-max-pids pods-per-core port protect-kernel-defaults provider-id qos-reserved
read-only-port register-node register-with-taints registry-burst registry-qps reserved-cpus reserved-memory resolv-conf
root-dir rotate-certificates rotate-server-certificates runonce runtime-cgroups runtime-request-timeout seccomp-default
serialize-image-pulls streaming-connection-idle-timeout sync-frequency system-cgroups system-reserved
system-reserved-cgroup tls-cert-file tls-cipher-suites tls-min-version tls-private-key-file topology-manager-policy
topology-manager-policy-options topology-manager-scope v vmodule volume-plugin-dir volume-stats-agg-period`
