package config

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
)

// Document is the configuration as a KubeletConfiguration: what the file says,
// with flags and defaults, for people who ask a kubelet what it runs with.
func (c *Config) Document() *kubeletv1beta1.KubeletConfiguration {
	d := &kubeletv1beta1.KubeletConfiguration{
		TypeMeta:      metav1.TypeMeta{APIVersion: kubeletv1beta1.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},
		StaticPodPath: c.ManifestPath, StaticPodURL: c.ManifestURL, PodLogsDir: c.PodLogsDir,
		SyncFrequency: duration(c.SyncEvery), FileCheckFrequency: duration(c.FileEvery), HTTPCheckFrequency: duration(c.HTTPEvery),
		EnableServer: &c.EnableServer, Address: c.Address, Port: c.Port, TLSCertFile: c.TLSCertFile, TLSPrivateKeyFile: c.TLSKeyFile,
		TLSMinVersion: c.TLS.MinVersion, TLSCipherSuites: c.TLS.CipherSuites, ImageServiceEndpoint: c.ImageEndpoint,
		SeccompDefault: &c.SeccompDefault, AllowedUnsafeSysctls: c.UnsafeSysctls, SerializeImagePulls: &c.SerializePulls,
		HealthzPort: &c.HealthzPort, HealthzBindAddress: c.HealthzAddress,
		ClusterDomain: c.ClusterDomain, ClusterDNS: c.ClusterDNS, ResolverConfig: &c.ResolvConf,
		NodeStatusUpdateFrequency: duration(c.StatusEvery), NodeStatusReportFrequency: duration(c.ReportEvery),
		NodeLeaseDurationSeconds: int32(c.LeaseDuration.Seconds()),
		CgroupRoot:               c.CgroupRoot, CgroupsPerQOS: &c.CgroupsPerQOS, CgroupDriver: c.CgroupDriver,
		PodCIDR: c.PodCIDR, ProviderID: c.ProviderID, MaxPods: c.MaxPods, PodPidsLimit: &c.PodPidsLimit,
		UserNamespaces: &kubeletv1beta1.UserNamespaces{IDsPerPod: &c.IDsPerPod},
		RegisterNode:   &c.Register, RegisterWithTaints: c.Taints,
		ContainerRuntimeEndpoint: c.RuntimeEndpoint, RuntimeRequestTimeout: duration(c.RuntimeTimeout),
		EnableProfilingHandler: &c.Profiling, EnableDebugFlagsHandler: &c.DebugFlags, EnableSystemLogHandler: &c.NodeLogs,
		ServerTLSBootstrap: c.ServerTLSBootstrap, RotateCertificates: c.RotateCertificates,
		ProtectKernelDefaults: c.ProtectKernel, FailSwapOn: &c.FailSwapOn, SystemReserved: amounts(c.SystemReserved), KubeReserved: amounts(c.KubeReserved),
		CrashLoopBackOff:    kubeletv1beta1.CrashLoopBackOffConfig{MaxContainerRestartPeriod: &metav1.Duration{Duration: c.MaxBackOff}},
		ContainerLogMaxSize: c.Logs.MaxSize.String(), ContainerLogMaxFiles: &c.Logs.MaxFiles, ContainerLogMaxWorkers: &c.Logs.Workers,
		ContainerLogMonitorInterval: &metav1.Duration{Duration: c.Logs.Interval},
		ImageGCHighThresholdPercent: &c.Images.High, ImageGCLowThresholdPercent: &c.Images.Low,
		ImageMinimumGCAge: duration(c.Images.MinAge), ImageMaximumGCAge: duration(c.Images.MaxAge),
		EvictionHard: c.Eviction.Hard, EvictionSoft: c.Eviction.Soft, EvictionSoftGracePeriod: c.Eviction.SoftGrace,
		EvictionMinimumReclaim: c.Eviction.MinimumReclaim, EvictionMaxPodGracePeriod: c.Eviction.MaxPodGracePeriod,
		EvictionPressureTransitionPeriod: duration(c.Eviction.TransitionPeriod),
		ShutdownGracePeriod:              duration(c.Shutdown.All), ShutdownGracePeriodCriticalPods: duration(c.Shutdown.Critical),
	}
	for _, p := range c.Shutdown.ByPriority {
		d.ShutdownGracePeriodByPodPriority = append(d.ShutdownGracePeriodByPodPriority,
			kubeletv1beta1.ShutdownGracePeriodByPodPriority{Priority: p.Priority, ShutdownGracePeriodSeconds: int64(p.Grace.Seconds())})
	}
	if c.ParallelPulls > 0 {
		pulls := int32(c.ParallelPulls)
		d.MaxParallelImagePulls = &pulls
	}
	for name, value := range c.FeatureGates {
		if d.FeatureGates == nil {
			d.FeatureGates = map[string]bool{}
		}
		d.FeatureGates[name], _ = strconv.ParseBool(value) // Validate has seen to that
	}
	if len(c.ManifestHeader) > 0 { // they may hold credentials
		d.StaticPodURLHeader = map[string][]string{}
		for name := range c.ManifestHeader {
			d.StaticPodURLHeader[name] = []string{"<masked>"}
		}
	}
	d.Authentication.X509.ClientCAFile = c.ClientCAFile
	d.Authentication.Webhook.Enabled, d.Authentication.Anonymous.Enabled = &c.WebhookTokens, &c.Anonymous
	d.Authorization.Mode = kubeletv1beta1.KubeletAuthorizationMode(c.Authorization)
	d.Logging.Format, d.Tracing = c.Log.Format, c.Tracing
	showFixed(d)
	return d
}

// showFixed adds what is so anyway, by the values that are taken for it (see unused).
// Programs that know every field write those that they were not told as false or 0,
// and a configuration that was read here, changed and written is to be taken again.
func showFixed(d *kubeletv1beta1.KubeletConfiguration) {
	yes := true
	d.EnableDebuggingHandlers, d.CPUCFSQuota, d.EnableControllerAttachDetach, d.LocalStorageCapacityIsolation = &yes, &yes, &yes, &yes
	d.CPUCFSQuotaPeriod = &metav1.Duration{Duration: 100 * time.Millisecond}
	d.NodeStatusMaxImages, d.OOMScoreAdj, d.MaxOpenFiles = ptr.To[int32](50), ptr.To[int32](-999), 1000000
	d.EnforceNodeAllocatable, d.FailCgroupV1 = []string{"pods"}, ptr.To(false)
	d.VolumeStatsAggPeriod, d.StreamingConnectionIdleTimeout = duration(time.Minute), duration(4*time.Hour)
	d.ConfigMapAndSecretChangeDetectionStrategy = kubeletv1beta1.WatchChangeDetectionStrategy
	d.ContentType, d.HairpinMode = "application/json", "promiscuous-bridge"
	d.CPUManagerPolicy, d.MemoryManagerPolicy, d.TopologyManagerPolicy, d.TopologyManagerScope = "none", "None", "none", "container"
	d.ImagePullCredentialsVerificationPolicy = kubeletv1beta1.NeverVerify
}

func duration(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

func amounts(list corev1.ResourceList) map[string]string {
	amounts := map[string]string{}
	for name, quantity := range list {
		amounts[string(name)] = quantity.String()
	}
	return amounts
}
