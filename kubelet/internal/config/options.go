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
		{"kubeconfig", &c.Kubeconfig, nil, "kubeconfig for the API server; without it only static pods run"},
		{"config", &c.ConfigFile, nil, "file with a KubeletConfiguration (kubelet.config.k8s.io/v1beta1)"},
		{"config-dir", &c.ConfigDir, nil, "directory of files *.conf with KubeletConfigurations that are merged into --config, in the order of their names"},
		{"feature-gates", &c.FeatureGates, c.gates(f), "upstream's feature gates, as they are: name=true|false,…"},
		{"bootstrap-kubeconfig", &c.BootstrapKubeconfig, nil, "kubeconfig for getting a client certificate, and with it --kubeconfig, while there is none that is valid"},
		{"rotate-certificates", &c.RotateCertificates, &f.RotateCertificates, "get a new client certificate before the old one expires"},
		{"rotate-server-certificates", &c.ServerTLSBootstrap, &f.ServerTLSBootstrap, "ask for the serving certificate, too, and for a new one before it expires; somebody has to approve it"},
	}
}

// sourceOptions: where pods come from besides the API server.
func (c *Config) sourceOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	return []option{
		{"pod-manifest-path", &c.StaticPodPath, &f.StaticPodPath, "manifest, or directory of manifests, of static pods"},
		{"manifest-url", &c.StaticPodURL, &f.StaticPodURL, "URL of a manifest of static pods"},
		{"manifest-url-header", (*headerFlag)(&c.StaticPodURLHeader), c.manifestHeader(f), "header for --manifest-url: name:value,…"},
		{"file-check-frequency", &c.FileCheckFrequency, &f.FileCheckFrequency, "how often --pod-manifest-path is read at least"},
		{"http-check-frequency", &c.HTTPCheckFrequency, &f.HTTPCheckFrequency, "how often --manifest-url is read"},
	}
}

// nodeOptions: what the node reports to the API server, and its network between
// nodes.
func (c *Config) nodeOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	return []option{
		{"cloud-provider", &c.CloudProvider, nil, "external: the node is tainted until a cloud's controller has completed it"},
		{"provider-id", &c.ProviderID, &f.ProviderID, "what the cloud calls this machine, noted in the Node"},
		{"hostname-override", &c.NodeName, nil, "name of the node (default: the host name)"},
		{"node-ip", &c.NodeIP, nil, "address of the node, or one of each family, separated by a comma (default: that of the default route)"},
		{"node-labels", (*labelsFlag)(&c.NodeLabels), nil, "labels for the node when it registers: key=value,…"},
		{"register-with-taints", (*taintsFlag)(&c.RegisterWithTaints), &f.RegisterWithTaints, "taints for the node when it registers: key=value:effect,…"},
		{"register-node", &c.RegisterNode, &f.RegisterNode, "register the node with the API server"},
		{"pod-cidr", &c.PodCIDR, &f.PodCIDR, "addresses of the node's pods, noted in the Node"},
		{"node-network", (*string)(&c.NodeNetwork), nil, "connect the pods of all nodes: routes (nodes share a link), vxlan (they don't have to), or none (somebody else's CNI configuration does)"},
		{"cni-conf-dir", &c.CNIConfDir, nil, "where --node-network writes the CNI configuration that the runtime reads"},
		{"make-iptables-util-chains", &c.MakeIPTablesUtilChains, &f.MakeIPTablesUtilChains, "keep others from what listens on the node's loopback, by the chain KUBE-FIREWALL"},
		{"max-pods", &c.MaxPods, &f.MaxPods, "most pods on the node"},
		{"pods-per-core", &c.PodsPerCore, &f.PodsPerCore, "most pods on the node for each of its cores, within --max-pods; 0 for no bound of that kind"},
		{"node-status-max-images", &c.NodeStatusMaxImages, &f.NodeStatusMaxImages, "most images that the node's status tells of; -1 for all"},
		{"node-status-update-frequency", &c.NodeStatusUpdateFrequency, &f.NodeStatusUpdateFrequency, "how often the node's status is looked at"},
		{"", &c.NodeStatusReportFrequency, &f.NodeStatusReportFrequency, ""},
		{"node-lease-duration-seconds", (*secondsFlag)(&c.LeaseDuration), c.leaseSeconds(f), "duration of the node's lease, renewed four times in it"},
		{"system-reserved", (*resourcesFlag)(&c.SystemReserved), amounts(&c.SystemReserved, &f.SystemReserved), "resources kept for the system: cpu=200m,memory=500Mi,pid=1000,…"},
		{"kube-reserved", (*resourcesFlag)(&c.KubeReserved), amounts(&c.KubeReserved, &f.KubeReserved), "resources kept for Kubernetes' own programs: cpu=200m,memory=150Mi,…"},
		{"reserved-cpus", &c.ReservedSystemCPUs, &f.ReservedSystemCPUs, "processors kept for the system and Kubernetes, as 0-1,4: as many as are not for pods, in the place of the cpu in the two above"},
		{"protect-kernel-defaults", &c.ProtectKernelDefaults, &f.ProtectKernelDefaults, "do not start on a machine whose kernel is set otherwise than Kubernetes wants it (vm.overcommit_memory=1, kernel.panic=10, …)"},
		{"fail-cgroupv1", &c.FailCgroupV1, &f.FailCgroupV1, "do not start on a machine with cgroup v1"},
		{"fail-swap-on", &c.FailSwapOn, &f.FailSwapOn, "do not start on a machine with swap"},
		{"", nil, c.shutdownPeriods(f), ""},
		{"", &c.Shutdown.GracePeriod, &f.ShutdownGracePeriod, ""},
		{"", &c.Shutdown.CriticalPodsGracePeriod, &f.ShutdownGracePeriodCriticalPods, ""},
	}
}

// podOptions: what holds for every pod.
func (c *Config) podOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	return []option{
		{"sync-frequency", &c.SyncFrequency, &f.SyncFrequency, "how often a pod in order is looked at"},
		{"cgroup-driver", &c.CgroupDriver, &f.CgroupDriver, "who makes control groups, cgroupfs or systemd, where the container runtime does not tell which it has"},
		{"cgroup-root", &c.CgroupRoot, &f.CgroupRoot, "cgroup below which pods' cgroups are made"},
		{"cgroups-per-qos", &c.CgroupsPerQOS, &f.CgroupsPerQOS, "make a cgroup per QoS class and pod"},
		{"enforce-node-allocatable", &c.EnforceNodeAllocatable, &f.EnforceNodeAllocatable, "what is held to its bounds: pods for all pods together; system-reserved and kube-reserved for daemons in the groups below, with -compressible for their share of cpu only; or none"},
		{"system-reserved-cgroup", &c.SystemReservedCgroup, &f.SystemReservedCgroup, "control group of the system's daemons, which must exist: a path as /system, or a slice of systemd's"},
		{"kube-reserved-cgroup", &c.KubeReservedCgroup, &f.KubeReservedCgroup, "control group of Kubernetes' own programs, which must exist"},
		{"cpu-cfs-quota", &c.CPUCFSQuota, &f.CPUCFSQuota, "hold containers to their limits of cpu"},
		{"cpu-cfs-quota-period", &c.CPUCFSQuotaPeriod, &f.CPUCFSQuotaPeriod, "time over which they are held to them"},
		{"", nil, c.oneProcessOOM(f), ""},
		{"", nil, c.swapBehavior(f), ""},
		{"cluster-dns", &c.ClusterDNS, &f.ClusterDNS, "name servers for pods with DNS policy ClusterFirst"},
		{"cluster-domain", &c.ClusterDomain, &f.ClusterDomain, "domain of the cluster"},
		{"resolv-conf", &c.ResolvConf, &f.ResolverConfig, "resolver configuration that pods start from"},
		{"seccomp-default", &c.SeccompDefault, &f.SeccompDefault, "confine containers by the runtime's seccomp profile where they say nothing"},
		{"allowed-unsafe-sysctls", &c.AllowedUnsafeSysctls, &f.AllowedUnsafeSysctls, "sysctls that pods may set besides the safe ones: net.core.somaxconn,kernel.msg*,…"},
		{"pod-max-pids", &c.PodPidsLimit, &f.PodPidsLimit, "most processes of a pod; 0 or -1 for as many as the node has"},
		{"", nil, c.userNamespaces(f), ""},
		{"", &c.MaxContainerRestartPeriod, &f.CrashLoopBackOff.MaxContainerRestartPeriod, ""},
	}
}

// runtimeOptions: what runs containers, and where their images come from.
func (c *Config) runtimeOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	return []option{
		{"container-runtime-endpoint", &c.ContainerRuntimeEndpoint, &f.ContainerRuntimeEndpoint, "socket of the CRI v1 runtime"},
		{"runtime-request-timeout", &c.RuntimeRequestTimeout, &f.RuntimeRequestTimeout, "deadline of calls to the runtime"},
		{"image-service-endpoint", &c.ImageServiceEndpoint, &f.ImageServiceEndpoint, "socket of the CRI v1 image service: the runtime's"},
		{"image-credential-provider-config", &c.ImageCredentialProviderConfig, nil, "file with a CredentialProviderConfig (kubelet.config.k8s.io/v1), or a directory of them: plugins that have credentials for images"},
		{"image-credential-provider-bin-dir", &c.ImageCredentialProviderBinDir, nil, "directory of those plugins' programs"},
		{"", &c.ImagePullCredentialsVerification.Verify, &f.ImagePullCredentialsVerificationPolicy, ""},
		{"", &c.ImagePullCredentialsVerification.Allowed, &f.PreloadedImagesVerificationAllowlist, ""},
		{"serialize-image-pulls", &c.SerializeImagePulls, &f.SerializeImagePulls, "pull images one after the other"},
		{"", &c.MaxParallelImagePulls, c.parallelPulls(f), ""},
	}
}

// diskOptions: where things are on disk, and what is removed when there is too much of
// it.
func (c *Config) diskOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	return []option{
		{"root-dir", &c.RootDir, nil, "directory for the kubelet's files"},
		{"pod-logs-dir", &c.PodLogsDir, &f.PodLogsDir, "directory for the logs of containers"},
		{"container-log-max-size", (*quantityFlag)(&c.ContainerLogs.MaxSize), c.logSize(f), "size that a container's log may reach before it is moved aside"},
		{"container-log-max-files", &c.ContainerLogs.MaxFiles, &f.ContainerLogMaxFiles, "log files that are kept of one container"},
		{"", &c.ContainerLogs.Workers, &f.ContainerLogMaxWorkers, ""},
		{"", &c.ContainerLogs.Interval, &f.ContainerLogMonitorInterval, ""},
		{"image-gc-high-threshold", &c.Images.HighThresholdPercent, &f.ImageGCHighThresholdPercent, "percent of their disk in use above which unused images are removed; 100 for never"},
		{"image-gc-low-threshold", &c.Images.LowThresholdPercent, &f.ImageGCLowThresholdPercent, "percent of their disk in use down to which unused images are removed"},
		{"minimum-image-ttl-duration", &c.Images.MinimumAge, &f.ImageMinimumGCAge, "how long an unused image is kept at least"},
		{"", &c.Images.MaximumAge, &f.ImageMaximumGCAge, ""},
		{"volume-stats-agg-period", &c.VolumeStatsAggPeriod, &f.VolumeStatsAggPeriod, "how often what pods have on disk is measured for those who ask; negative for never"},
	}
}

// evictionOptions: when pods are evicted because the node is short of something.
func (c *Config) evictionOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	e := &c.Eviction
	return []option{
		{"eviction-hard", thresholdsFlag(&e.Hard), c.hardThresholds(f), "how little may be left before pods are evicted at once: memory.available<100Mi,nodefs.available<10%,…; empty for never"},
		{"", nil, translation{field: &f.MergeDefaultEvictionSettings}, ""}, // see hardThresholds
		{"eviction-soft", thresholdsFlag(&e.Soft), &f.EvictionSoft, "how little may be left before pods are evicted after a while: memory.available<300Mi,…"},
		{"eviction-soft-grace-period", settingsFlag(&e.SoftGrace), &f.EvictionSoftGracePeriod, "after how long: memory.available=1m30s,…"},
		{"eviction-minimum-reclaim", settingsFlag(&e.MinimumReclaim), &f.EvictionMinimumReclaim, "how much more must be free before evicting ends: nodefs.available=1Gi,…"},
		{"eviction-max-pod-grace-period", &e.MaxPodGracePeriod, &f.EvictionMaxPodGracePeriod, "most seconds that a pod gets that is evicted after a while"},
		{"local-storage-capacity-isolation", &c.LocalStorageCapacityIsolation, &f.LocalStorageCapacityIsolation, "tell how large the node's disk is, and hold pods to their limits of it"},
		{"eviction-pressure-transition-period", &e.TransitionPeriod, &f.EvictionPressureTransitionPeriod, "how long the node says that it is short after it was"},
	}
}

// processOptions: how the kubelet itself runs.
func (c *Config) processOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	p := &c.Process
	return []option{
		{"oom-score-adj", &p.OOMScore, &f.OOMScoreAdj, "how likely the kernel ends the kubelet when it is out of memory: -1000 for never, 1000 for first"},
		{"max-open-files", &p.OpenFiles, &f.MaxOpenFiles, "most files that the kubelet may have open"},
		{"system-cgroups", &p.SystemGroup, &f.SystemCgroups, "control group that the machine's processes are put in, when the kubelet starts, if they are in the root group; empty to leave them there"},
		{"kubelet-cgroups", &p.Group, &f.KubeletCgroups, "control group to run the kubelet in; empty for the one that it is started in"},
	}
}

// servingOptions: what the kubelet serves, and what it logs and traces.
func (c *Config) servingOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	return []option{
		{"enable-server", &c.EnableServer, &f.EnableServer, "listen on --port"},
		{"address", &c.Address, &f.Address, "address that the kubelet serves on"},
		{"port", &c.Port, &f.Port, "port that the kubelet serves on; 0 for any that is free"},
		{"read-only-port", &c.ReadOnlyPort, &f.ReadOnlyPort, "port that shows pods, statistics and metrics to everybody, in plain HTTP and without authentication; 0 for none"},
		{"cert-dir", &c.CertDir, nil, "where a serving certificate is made if none is given"},
		{"tls-cert-file", &c.TLSCertFile, &f.TLSCertFile, "serving certificate"},
		{"tls-private-key-file", &c.TLSKeyFile, &f.TLSPrivateKeyFile, "key of the serving certificate"},
		{"tls-min-version", &c.TLS.MinVersion, &f.TLSMinVersion, ""},
		{"tls-cipher-suites", &c.TLS.CipherSuites, &f.TLSCipherSuites, ""},
		{"", &c.TLS.Curves, &f.TLSCurvePreferences, ""},
		{"healthz-bind-address", &c.HealthzAddress, &f.HealthzBindAddress, "address of the health port"},
		{"healthz-port", &c.HealthzPort, &f.HealthzPort, "health port, plain HTTP; 0 for none"},
		{"enable-debugging-handlers", &c.EnableDebuggingHandlers, &f.EnableDebuggingHandlers, "serve what leads into pods: logs, exec, attach, port-forward and run; and profiles, log levels and the machine's logs"},
		{"", &c.EnableProfilingHandler, &f.EnableProfilingHandler, ""},
		{"contention-profiling", &c.EnableContentionProfiling, &f.EnableContentionProfiling, "have those recorded who wait for locks and channels"},
		{"", &c.EnableDebugFlagsHandler, &f.EnableDebugFlagsHandler, ""},
		{"", &c.EnableSystemLogHandler, &f.EnableSystemLogHandler, ""},
		{"", &c.EnableSystemLogQuery, &f.EnableSystemLogQuery, ""},
		{"", nil, c.logging(f), ""},
		{"", nil, c.tracing(f), ""},
	}
}

// accessOptions: who may use the kubelet's port.
func (c *Config) accessOptions(f *kubeletv1beta1.KubeletConfiguration) []option {
	who, may := &f.Authentication, &f.Authorization
	return []option{
		{"client-ca-file", &c.ClientCAFile, &who.X509.ClientCAFile, "CA of the clients that the kubelet knows by certificate"},
		{"anonymous-auth", &c.AnonymousAuth, &who.Anonymous.Enabled, "let requests without credentials pass as system:anonymous"},
		{"authentication-token-webhook", &c.AuthenticationTokenWebhook, &who.Webhook.Enabled, "ask the API server about bearer tokens"},
		{"authentication-token-webhook-cache-ttl", &c.CacheTTLs.Token, &who.Webhook.CacheTTL, "how long a token that the API server vouched for is good"},
		{"authorization-mode", &c.AuthorizationMode, &may.Mode, "who may do what on the kubelet's port: Webhook or AlwaysAllow"},
		{"authorization-webhook-cache-authorized-ttl", &c.CacheTTLs.Allowed, &may.Webhook.CacheAuthorizedTTL, "how long it holds that somebody may do something"},
		{"authorization-webhook-cache-unauthorized-ttl", &c.CacheTTLs.Denied, &may.Webhook.CacheUnauthorizedTTL, "how long it holds that somebody may not"},
	}
}
