package config

import (
	"slices"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// option is one setting.
type option struct {
	// flag sets it, and wins over the file; "" where only the file has it.
	flag string
	// target is where it is kept: a pointer, or the flag's value.
	target any
	// field is its place in a KubeletConfiguration: a pointer, or a translation; nil
	// where only a flag has it.
	field any
	// usage is the flag's help; "" if the flag is added elsewhere.
	usage string
}

// options are all settings, with their places in c and in f.
func (c *Config) options(f *kubeletv1beta1.KubeletConfiguration) []option {
	return slices.Concat(c.identityOptions(f), c.sourceOptions(f), c.nodeOptions(f), c.podOptions(f), c.runtimeOptions(f),
		c.diskOptions(f), c.evictionOptions(f), c.processOptions(f), c.servingOptions(f), c.accessOptions(f))
}

// identityOptions: where settings come from, and how the API server and clients
// recognise the kubelet.
func (c *Config) identityOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	return []option{
		{"kubeconfig", &c.Kubeconfig, nil, "kubeconfig for the connection to the API server; if not set, only static pods run"},
		{"config", &c.ConfigFile, nil, "file with a KubeletConfiguration (kubelet.config.k8s.io/v1beta1)"},
		{"config-dir", &c.ConfigDir, nil,
			"directory of *.conf files with KubeletConfigurations, merged into --config in the order of their names"},
		{"feature-gates", &c.FeatureGates, c.gates(f),
			"feature gates as NAME=true|false,…; most can only be set to their defaults, and a value that is not supported is an error"},
		{"bootstrap-kubeconfig", &c.BootstrapKubeconfig, nil,
			"kubeconfig for requesting a client certificate if --kubeconfig does not exist or has expired; --kubeconfig is then " +
				"written with that certificate"},
		{"rotate-certificates", &c.RotateCertificates, &f.RotateCertificates, "request a new client certificate before the current one expires"},
		{"rotate-server-certificates", &c.ServerTLSBootstrap, &f.ServerTLSBootstrap,
			"request the serving certificate from the API server, and a new one before it expires; an administrator has to approve each request"},
	}
}

// sourceOptions: where pods come from besides the API server.
func (c *Config) sourceOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	s := &c.Sources
	return []option{
		{"pod-manifest-path", &s.StaticPodPath, &f.StaticPodPath, "file or directory with manifests of static pods"},
		{"manifest-url", &s.StaticPodURL, &f.StaticPodURL, "URL of a manifest with static pods"},
		{"manifest-url-header", (*headerFlag)(&s.StaticPodURLHeader), c.manifestHeader(f), "HTTP headers for --manifest-url: name:value,…"},
		{"file-check-frequency", &s.FileCheckFrequency, &f.FileCheckFrequency, "maximum interval between reads of --pod-manifest-path"},
		{"http-check-frequency", &s.HTTPCheckFrequency, &f.HTTPCheckFrequency, "interval between reads of --manifest-url"},
	}
}

// nodeOptions: what the node reports to the API server, and its network between
// nodes.
func (c *Config) nodeOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	return []option{
		{"cloud-provider", &c.CloudProvider, nil, "external taints the node until a cloud controller has initialized it"},
		{"provider-id", &c.ProviderID, &f.ProviderID, "the cloud provider's ID for this machine, stored in spec.providerID of the node"},
		{"hostname-override", &c.NodeName, nil, "name of the node (default: the host name)"},
		{"node-ip", &c.NodeIP, nil,
			"IP address of the node, or an IPv4 and an IPv6 address separated by a comma (default: the address of the default route)"},
		{"node-labels", (*labelsFlag)(&c.NodeLabels), nil, "labels to add when the node registers: key=value,…"},
		{"register-with-taints", (*taintsFlag)(&c.RegisterWithTaints), &f.RegisterWithTaints,
			"taints to add when the node registers: key=value:effect,…"},
		{"register-node", &c.RegisterNode, &f.RegisterNode, "register the node with the API server"},
		{"pod-cidr", &c.PodCIDR, &f.PodCIDR, "address range for the node's pods, stored in the node"},
		{"node-network", (*string)(&c.NodeNetwork), nil,
			"how to connect pods across nodes: routes (all nodes on one link), vxlan (any network), or none (another CNI configuration does it)"},
		{"cni-conf-dir", &c.CNIConfDir, nil, "directory where --node-network writes the CNI configuration for the runtime"},
		{"make-iptables-util-chains", &c.MakeIPTablesUtilChains, &f.MakeIPTablesUtilChains,
			"create the iptables chain KUBE-FIREWALL, which keeps other machines away from services on the node's loopback address"},
		{"max-pods", &c.MaxPods, &f.MaxPods, "maximum number of pods on the node"},
		{"pods-per-core", &c.PodsPerCore, &f.PodsPerCore, "maximum number of pods per CPU core, within --max-pods; 0 for no such limit"},
		{"node-status-max-images", &c.NodeStatus.MaxImages, &f.NodeStatusMaxImages,
			"maximum number of images listed in the node's status; -1 for all"},
		{"node-status-update-frequency", &c.NodeStatus.UpdateFrequency, &f.NodeStatusUpdateFrequency,
			"interval between computations of the node's status"},
		{"", &c.NodeStatus.ReportFrequency, &f.NodeStatusReportFrequency, ""},
		{"node-lease-duration-seconds", (*secondsFlag)(&c.NodeStatus.LeaseDuration), c.leaseSeconds(f),
			"duration of the node's lease in seconds; it is renewed four times in that period"},
		{"system-reserved", (*resourcesFlag)(&c.Allocatable.SystemReserved), amounts(&c.Allocatable.SystemReserved, &f.SystemReserved),
			"resources kept for the system: cpu=200m,memory=500Mi,pid=1000,…"},
		{"kube-reserved", (*resourcesFlag)(&c.Allocatable.KubeReserved), amounts(&c.Allocatable.KubeReserved, &f.KubeReserved),
			"resources kept for Kubernetes' own programs: cpu=200m,memory=150Mi,…"},
		{"reserved-cpus", &c.Allocatable.ReservedCPUs, &f.ReservedSystemCPUs,
			"CPUs reserved for the system and Kubernetes, such as 0-1,4; their number replaces cpu in --system-reserved and --kube-reserved"},
		{"protect-kernel-defaults", &c.ProtectKernelDefaults, &f.ProtectKernelDefaults,
			"refuse to start if kernel settings differ from what Kubernetes expects (vm.overcommit_memory=1, kernel.panic=10, …)"},
		{"fail-cgroupv1", &c.Cgroups.FailV1, &f.FailCgroupV1, "refuse to start on a machine with cgroup v1"},
		{"fail-swap-on", &c.FailSwapOn, &f.FailSwapOn, "refuse to start on a machine with swap enabled"},
		{"", nil, c.shutdownPeriods(f), ""},
		{"", &c.Shutdown.GracePeriod, &f.ShutdownGracePeriod, ""},
		{"", &c.Shutdown.CriticalPodsGracePeriod, &f.ShutdownGracePeriodCriticalPods, ""},
	}
}

// podOptions: what holds for every pod.
func (c *Config) podOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	return []option{
		{"sync-frequency", &c.SyncFrequency, &f.SyncFrequency, "interval between syncs of a healthy pod"},
		{"", &c.ChangeDetection, c.changeDetection(f), ""},
		{"cgroup-driver", &c.Cgroups.Driver, &f.CgroupDriver,
			"cgroup driver, cgroupfs or systemd; used only if the container runtime does not report its own"},
		{"cgroup-root", &c.Cgroups.Root, &f.CgroupRoot, "parent cgroup of all pod cgroups"},
		{"cgroups-per-qos", &c.Cgroups.PerQOS, &f.CgroupsPerQOS, "create a cgroup for each QoS class and each pod"},
		{"enforce-node-allocatable", &c.Allocatable.Enforce, &f.EnforceNodeAllocatable,
			"limits to enforce: pods (all pods together), system-reserved and kube-reserved (daemons in the cgroups below; with the suffix " +
				"-compressible only CPU), or none"},
		{"system-reserved-cgroup", &c.Allocatable.SystemReservedCgroup, &f.SystemReservedCgroup,
			"existing cgroup of system daemons: a path such as /system, or a systemd slice"},
		{"kube-reserved-cgroup", &c.Allocatable.KubeReservedCgroup, &f.KubeReservedCgroup, "existing cgroup of Kubernetes' own programs"},
		{"cpu-cfs-quota", &c.Cgroups.CPUCFSQuota, &f.CPUCFSQuota, "enforce CPU limits of containers"},
		{"cpu-cfs-quota-period", &c.Cgroups.CPUCFSQuotaPeriod, &f.CPUCFSQuotaPeriod, "period over which CPU limits are enforced"},
		{"", nil, c.oneProcessOOM(f), ""},
		{"", nil, c.swapBehavior(f), ""},
		{"", nil, c.memoryThrottling(f), ""},
		{"", nil, c.memoryReservation(f), ""},
		{"cluster-dns", &c.ClusterDNS, &f.ClusterDNS, "DNS servers for pods with the DNS policy ClusterFirst"},
		{"cluster-domain", &c.ClusterDomain, &f.ClusterDomain, "DNS domain of the cluster"},
		{"resolv-conf", &c.ResolvConf, &f.ResolverConfig, "resolver configuration on which that of pods is based"},
		{"seccomp-default", &c.SeccompDefault, &f.SeccompDefault,
			"use the runtime's default seccomp profile for containers that don't choose one"},
		{"allowed-unsafe-sysctls", &c.AllowedUnsafeSysctls, &f.AllowedUnsafeSysctls,
			"unsafe sysctls that pods may set: net.core.somaxconn,kernel.msg*,…"},
		{"pod-max-pids", &c.PodPidsLimit, &f.PodPidsLimit, "maximum number of processes in a pod; 0 or -1 for the node's limit"},
		{"", nil, c.userNamespaces(f), ""},
		{"", &c.MaxContainerRestartPeriod, &f.CrashLoopBackOff.MaxContainerRestartPeriod, ""},
	}
}

// runtimeOptions: what runs containers, and where their images come from.
func (c *Config) runtimeOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	return []option{
		{"container-runtime-endpoint", &c.ContainerRuntimeEndpoint, &f.ContainerRuntimeEndpoint, "socket of the CRI v1 runtime"},
		{"runtime-request-timeout", &c.RuntimeRequestTimeout, &f.RuntimeRequestTimeout, "timeout of calls to the runtime"},
		{"image-service-endpoint", &c.ImageServiceEndpoint, &f.ImageServiceEndpoint, "socket of the CRI v1 image service; must be the runtime's"},
		{"image-credential-provider-config", &c.Pulls.CredentialProviderConfig, nil,
			"file or directory with CredentialProviderConfigs (kubelet.config.k8s.io/v1): plugins that supply credentials for image pulls"},
		{"image-credential-provider-bin-dir", &c.Pulls.CredentialProviderBinDir, nil, "directory with the credential provider plugins"},
		{"", &c.Pulls.CredentialsVerification.Verify, &f.ImagePullCredentialsVerificationPolicy, ""},
		{"", &c.Pulls.CredentialsVerification.Allowed, &f.PreloadedImagesVerificationAllowlist, ""},
		{"serialize-image-pulls", &c.Pulls.Serialize, &f.SerializeImagePulls, "pull images one at a time"},
		{"", &c.Pulls.MaxParallel, c.parallelPulls(f), ""},
	}
}

// diskOptions: where things are on disk, and what is removed when there is too much of
// it.
func (c *Config) diskOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	return []option{
		{"root-dir", &c.RootDir, nil, "directory for the kubelet's files"},
		{"pod-logs-dir", &c.PodLogsDir, &f.PodLogsDir, "directory for container logs"},
		{"container-log-max-size", (*quantityFlag)(&c.ContainerLogs.MaxSize), c.logSize(f), "size at which a container's log file is rotated"},
		{"container-log-max-files", &c.ContainerLogs.MaxFiles, &f.ContainerLogMaxFiles, "maximum number of log files per container"},
		{"", &c.ContainerLogs.Workers, &f.ContainerLogMaxWorkers, ""},
		{"", &c.ContainerLogs.Interval, &f.ContainerLogMonitorInterval, ""},
		{"image-gc-high-threshold", &c.Images.HighThresholdPercent, &f.ImageGCHighThresholdPercent,
			"disk usage in percent above which unused images are removed; 100 for never"},
		{"image-gc-low-threshold", &c.Images.LowThresholdPercent, &f.ImageGCLowThresholdPercent,
			"disk usage in percent at which removal of unused images stops"},
		{"minimum-image-ttl-duration", &c.Images.MinimumAge, &f.ImageMinimumGCAge, "minimum time that an unused image is kept"},
		{"", &c.Images.MaximumAge, &f.ImageMaximumGCAge, ""},
		{"volume-stats-agg-period", &c.Serving.VolumeStatsAggPeriod, &f.VolumeStatsAggPeriod,
			"interval between measurements of pods' disk usage for statistics; negative to disable"},
	}
}

// evictionOptions: when pods are evicted because the node is short of something.
func (c *Config) evictionOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	e := &c.Eviction
	return []option{
		{"eviction-hard", thresholdsFlag(&e.Hard), c.hardThresholds(f),
			"thresholds at which pods are evicted at once: memory.available<100Mi,nodefs.available<10%,…; empty for never"},
		{"", nil, translation{field: &f.MergeDefaultEvictionSettings}, ""}, // see hardThresholds
		{"eviction-soft", thresholdsFlag(&e.Soft), &f.EvictionSoft,
			"thresholds at which pods are evicted after a grace period: memory.available<300Mi,…"},
		{"eviction-soft-grace-period", settingsFlag(&e.SoftGrace), &f.EvictionSoftGracePeriod,
			"grace periods for --eviction-soft: memory.available=1m30s,…"},
		{"eviction-minimum-reclaim", settingsFlag(&e.MinimumReclaim), &f.EvictionMinimumReclaim,
			"amount to free beyond the threshold before eviction stops: nodefs.available=1Gi,…"},
		{"eviction-max-pod-grace-period", &e.MaxPodGracePeriod, &f.EvictionMaxPodGracePeriod,
			"maximum termination grace period, in seconds, of pods evicted by --eviction-soft"},
		{"local-storage-capacity-isolation", &c.LocalStorageCapacityIsolation, &f.LocalStorageCapacityIsolation,
			"report the node's ephemeral storage, and enforce pods' limits on it"},
		{"eviction-pressure-transition-period", &e.TransitionPeriod, &f.EvictionPressureTransitionPeriod,
			"how long the node keeps reporting pressure after it has ended"},
	}
}

// processOptions: how the kubelet itself runs.
func (c *Config) processOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	p := &c.Process
	return []option{
		{"oom-score-adj", &p.OOMScore, &f.OOMScoreAdj, "OOM score adjustment of the kubelet, from -1000 (never killed) to 1000 (killed first)"},
		{"max-open-files", &p.OpenFiles, &f.MaxOpenFiles, "maximum number of files that the kubelet may have open"},
		{"system-cgroups", &p.SystemGroup, &f.SystemCgroups,
			"cgroup to which processes in the root cgroup are moved when the kubelet starts; empty to leave them there"},
		{"kubelet-cgroups", &p.Group, &f.KubeletCgroups, "cgroup for the kubelet itself; empty to stay in the one that it is started in"},
	}
}

// servingOptions: what the kubelet serves, and what it logs and traces.
func (c *Config) servingOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	s := &c.Serving
	return []option{
		{"enable-server", &s.EnableServer, &f.EnableServer, "listen on --port"},
		{"address", &s.Address, &f.Address, "address that the kubelet serves on"},
		{"port", &s.Port, &f.Port, "port that the kubelet serves on; 0 for any free port"},
		{"read-only-port", &s.ReadOnlyPort, &f.ReadOnlyPort,
			"port that serves pods, statistics and metrics to anyone over plain HTTP, without authentication; 0 to disable"},
		{"cert-dir", &c.CertDir, nil, "directory for the generated serving certificate if --tls-cert-file is not set"},
		{"tls-cert-file", &s.TLSCertFile, &f.TLSCertFile, "serving certificate"},
		{"tls-private-key-file", &s.TLSKeyFile, &f.TLSPrivateKeyFile, "key of the serving certificate"},
		{"tls-min-version", &s.TLS.MinVersion, &f.TLSMinVersion, ""},
		{"tls-cipher-suites", &s.TLS.CipherSuites, &f.TLSCipherSuites, ""},
		{"", &s.TLS.Curves, &f.TLSCurvePreferences, ""},
		{"healthz-bind-address", &s.HealthzAddress, &f.HealthzBindAddress, "address of the health endpoint"},
		{"healthz-port", &s.HealthzPort, &f.HealthzPort, "port of the health endpoint (plain HTTP); 0 to disable"},
		{"enable-debugging-handlers", &s.EnableDebuggingHandlers, &f.EnableDebuggingHandlers,
			"serve the endpoints for logs, exec, attach, port-forward and run, and for profiles, log levels and the machine's logs"},
		{"", &s.EnableProfilingHandler, &f.EnableProfilingHandler, ""},
		{"contention-profiling", &s.EnableContentionProfiling, &f.EnableContentionProfiling, "record contention for locks and channels"},
		{"", &s.EnableDebugFlagsHandler, &f.EnableDebugFlagsHandler, ""},
		{"", &s.EnableSystemLogHandler, &f.EnableSystemLogHandler, ""},
		{"", &s.EnableSystemLogQuery, &f.EnableSystemLogQuery, ""},
		{"", nil, c.logging(f), ""},
		{"", nil, c.tracing(f), ""},
	}
}

// accessOptions: who may use the kubelet's port.
func (c *Config) accessOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	s, who, may := &c.Serving, &f.Authentication, &f.Authorization
	return []option{
		{"client-ca-file", &s.ClientCAFile, &who.X509.ClientCAFile, "CA that client certificates must be signed by"},
		{"anonymous-auth", &s.AnonymousAuth, &who.Anonymous.Enabled, "accept requests without credentials as system:anonymous"},
		{"authentication-token-webhook", &s.AuthenticationTokenWebhook, &who.Webhook.Enabled, "let the API server validate bearer tokens"},
		{"authentication-token-webhook-cache-ttl", &s.CacheTTLs.Token, &who.Webhook.CacheTTL, "how long validated bearer tokens are cached"},
		{"authorization-mode", &s.AuthorizationMode, &may.Mode,
			"authorization of requests to the kubelet's port: Webhook (ask the API server) or AlwaysAllow"},
		{"authorization-webhook-cache-authorized-ttl", &s.CacheTTLs.Allowed, &may.Webhook.CacheAuthorizedTTL,
			"how long positive authorization answers are cached"},
		{"authorization-webhook-cache-unauthorized-ttl", &s.CacheTTLs.Denied, &may.Webhook.CacheUnauthorizedTTL,
			"how long negative authorization answers are cached"},
	}
}
