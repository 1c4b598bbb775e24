package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/shutdown"
)

// field is one thing that the file can set: the flag that wins over it, and
// how it is taken.
type field struct {
	name, flag string
	take       func() error
}

func set[T any](into *T, value T) func() error {
	return func() error {
		*into = value
		return nil
	}
}

func setPointer[T any](into *T, value *T) func() error {
	return func() error {
		if value != nil {
			*into = *value
		}
		return nil
	}
}

func setDuration(into *time.Duration, value metav1.Duration) func() error {
	return set(into, value.Duration)
}

// fields are all that can be taken from the file.
func (c *Config) fields(f *kubeletv1beta1.KubeletConfiguration, flagGiven func(string) bool) []field {
	return slices.Concat(c.nodeFields(f), c.boundFields(f), c.accessFields(f, flagGiven))
}

// nodeFields say where the kubelet is, what it serves and how it runs pods.
func (c *Config) nodeFields(f *kubeletv1beta1.KubeletConfiguration) []field {
	return []field{
		{"staticPodPath", "pod-manifest-path", set(&c.ManifestPath, f.StaticPodPath)},
		{"staticPodURL", "manifest-url", set(&c.ManifestURL, f.StaticPodURL)},
		{"staticPodURLHeader", "manifest-url-header", set(&c.ManifestHeader, f.StaticPodURLHeader)},
		{"podLogsDir", "pod-logs-dir", set(&c.PodLogsDir, f.PodLogsDir)},
		{"syncFrequency", "sync-frequency", setDuration(&c.SyncEvery, f.SyncFrequency)},
		{"fileCheckFrequency", "file-check-frequency", setDuration(&c.FileEvery, f.FileCheckFrequency)},
		{"httpCheckFrequency", "http-check-frequency", setDuration(&c.HTTPEvery, f.HTTPCheckFrequency)},
		{"enableServer", "enable-server", setPointer(&c.EnableServer, f.EnableServer)},
		{"address", "address", set(&c.Address, f.Address)},
		{"port", "port", set(&c.Port, f.Port)},
		{"tlsCertFile", "tls-cert-file", set(&c.TLSCertFile, f.TLSCertFile)},
		{"tlsPrivateKeyFile", "tls-private-key-file", set(&c.TLSKeyFile, f.TLSPrivateKeyFile)},
		{"tlsMinVersion", "tls-min-version", set(&c.TLS.MinVersion, f.TLSMinVersion)},
		{"tlsCipherSuites", "tls-cipher-suites", set(&c.TLS.CipherSuites, f.TLSCipherSuites)},
		{"healthzPort", "healthz-port", setPointer(&c.HealthzPort, f.HealthzPort)},
		{"healthzBindAddress", "healthz-bind-address", set(&c.HealthzAddress, f.HealthzBindAddress)},
		{"enableProfilingHandler", "", setPointer(&c.Profiling, f.EnableProfilingHandler)},
		{"enableDebugFlagsHandler", "", setPointer(&c.DebugFlags, f.EnableDebugFlagsHandler)},
		{"enableSystemLogHandler", "", setPointer(&c.NodeLogs, f.EnableSystemLogHandler)},
		{"clusterDomain", "cluster-domain", set(&c.ClusterDomain, f.ClusterDomain)},
		{"clusterDNS", "cluster-dns", set(&c.ClusterDNS, f.ClusterDNS)},
		{"resolvConf", "resolv-conf", setPointer(&c.ResolvConf, f.ResolverConfig)},
		{"nodeStatusUpdateFrequency", "node-status-update-frequency", setDuration(&c.StatusEvery, f.NodeStatusUpdateFrequency)},
		{"nodeStatusReportFrequency", "", setDuration(&c.ReportEvery, f.NodeStatusReportFrequency)},
		{"nodeLeaseDurationSeconds", "node-lease-duration-seconds", set(&c.LeaseDuration, time.Duration(f.NodeLeaseDurationSeconds)*time.Second)},
		{"cgroupRoot", "cgroup-root", set(&c.CgroupRoot, f.CgroupRoot)},
		{"cgroupsPerQOS", "cgroups-per-qos", setPointer(&c.CgroupsPerQOS, f.CgroupsPerQOS)},
		{"cgroupDriver", "cgroup-driver", set(&c.CgroupDriver, f.CgroupDriver)},
		{"providerID", "provider-id", set(&c.ProviderID, f.ProviderID)},
		{"podCIDR", "pod-cidr", set(&c.PodCIDR, f.PodCIDR)},
		{"maxPods", "max-pods", set(&c.MaxPods, f.MaxPods)},
		{"userNamespaces", "", func() error { return setPointer(&c.IDsPerPod, f.UserNamespaces.IDsPerPod)() }},
		{"registerNode", "register-node", setPointer(&c.Register, f.RegisterNode)},
		{"registerWithTaints", "register-with-taints", set(&c.Taints, f.RegisterWithTaints)},
		{"containerRuntimeEndpoint", "container-runtime-endpoint", set(&c.RuntimeEndpoint, f.ContainerRuntimeEndpoint)},
		{"imageServiceEndpoint", "image-service-endpoint", set(&c.ImageEndpoint, f.ImageServiceEndpoint)},
		{"runtimeRequestTimeout", "runtime-request-timeout", setDuration(&c.RuntimeTimeout, f.RuntimeRequestTimeout)},
		{"serverTLSBootstrap", "rotate-server-certificates", set(&c.ServerTLSBootstrap, f.ServerTLSBootstrap)},
		{"rotateCertificates", "rotate-certificates", set(&c.RotateCertificates, f.RotateCertificates)},
		{"seccompDefault", "seccomp-default", setPointer(&c.SeccompDefault, f.SeccompDefault)},
		{"allowedUnsafeSysctls", "allowed-unsafe-sysctls", set(&c.UnsafeSysctls, f.AllowedUnsafeSysctls)},
		{"featureGates", "feature-gates", set(&c.FeatureGates, gatesOf(f))},
		{"serializeImagePulls", "serialize-image-pulls", setPointer(&c.SerializePulls, f.SerializeImagePulls)},
		{"protectKernelDefaults", "protect-kernel-defaults", set(&c.ProtectKernel, f.ProtectKernelDefaults)},
		{"failSwapOn", "fail-swap-on", setPointer(&c.FailSwapOn, f.FailSwapOn)},
		{"systemReserved", "system-reserved", setResources(&c.SystemReserved, f.SystemReserved)},
		{"kubeReserved", "kube-reserved", setResources(&c.KubeReserved, f.KubeReserved)},
		{"maxParallelImagePulls", "", func() error { c.ParallelPulls = int(*f.MaxParallelImagePulls); return nil }},
		{"crashLoopBackOff", "", func() error {
			if most := f.CrashLoopBackOff.MaxContainerRestartPeriod; most != nil {
				c.MaxBackOff = most.Duration
			}
			return nil
		}},
	}
}

// boundFields say how much pods may take: logs, images, what is evicted, and the
// time that they have at the machine's end.
func (c *Config) boundFields(f *kubeletv1beta1.KubeletConfiguration) []field {
	return []field{
		{"containerLogMaxSize", "container-log-max-size", func() (err error) {
			c.Logs.MaxSize, err = resource.ParseQuantity(f.ContainerLogMaxSize)
			return err
		}},
		{"containerLogMaxFiles", "container-log-max-files", setPointer(&c.Logs.MaxFiles, f.ContainerLogMaxFiles)},
		{"containerLogMaxWorkers", "", setPointer(&c.Logs.Workers, f.ContainerLogMaxWorkers)},
		{"containerLogMonitorInterval", "", func() error { c.Logs.Interval = f.ContainerLogMonitorInterval.Duration; return nil }},
		{"imageGCHighThresholdPercent", "image-gc-high-threshold", setPointer(&c.Images.High, f.ImageGCHighThresholdPercent)},
		{"imageGCLowThresholdPercent", "image-gc-low-threshold", setPointer(&c.Images.Low, f.ImageGCLowThresholdPercent)},
		{"imageMinimumGCAge", "minimum-image-ttl-duration", setDuration(&c.Images.MinAge, f.ImageMinimumGCAge)},
		{"imageMaximumGCAge", "", setDuration(&c.Images.MaxAge, f.ImageMaximumGCAge)},
		{"evictionHard", "eviction-hard", set(&c.Eviction.Hard, hardThresholds(f))},
		{"evictionSoft", "eviction-soft", set(&c.Eviction.Soft, f.EvictionSoft)},
		{"evictionSoftGracePeriod", "eviction-soft-grace-period", set(&c.Eviction.SoftGrace, f.EvictionSoftGracePeriod)},
		{"evictionMinimumReclaim", "eviction-minimum-reclaim", set(&c.Eviction.MinimumReclaim, f.EvictionMinimumReclaim)},
		{"evictionMaxPodGracePeriod", "eviction-max-pod-grace-period", set(&c.Eviction.MaxPodGracePeriod, f.EvictionMaxPodGracePeriod)},
		{"evictionPressureTransitionPeriod", "eviction-pressure-transition-period", setDuration(&c.Eviction.TransitionPeriod, f.EvictionPressureTransitionPeriod)},
		{"mergeDefaultEvictionSettings", "", func() error { return nil }}, // see hardThresholds
		{"shutdownGracePeriod", "", setDuration(&c.Shutdown.All, f.ShutdownGracePeriod)},
		{"shutdownGracePeriodCriticalPods", "", setDuration(&c.Shutdown.Critical, f.ShutdownGracePeriodCriticalPods)},
		{"shutdownGracePeriodByPodPriority", "", set(&c.Shutdown.ByPriority, shutdownPeriods(f))},
		{"podPidsLimit", "pod-max-pids", setPointer(&c.PodPidsLimit, f.PodPidsLimit)},
	}
}

// accessFields say what is logged and traced, who may ask and what they may.
func (c *Config) accessFields(f *kubeletv1beta1.KubeletConfiguration, flagGiven func(string) bool) []field {
	return []field{
		{"tracing", "", set(&c.Tracing, f.Tracing)},
		{"logging", "", func() error { c.applyLogging(f); return nil }},
		{"authentication", "", func() error { return c.applyAuthentication(f, flagGiven) }},
		{"authorization", "authorization-mode", func() error {
			if f.Authorization.Mode != "" {
				c.Authorization = string(f.Authorization.Mode)
			}
			return errors.Join(
				checkDuration("authorization-webhook-cache-authorized-ttl", f.Authorization.Webhook.CacheAuthorizedTTL),
				checkDuration("authorization-webhook-cache-unauthorized-ttl", f.Authorization.Webhook.CacheUnauthorizedTTL))
		}},
	}
}

// hardThresholds are the file's; what it leaves out is no threshold, unless it
// says that upstream's defaults stay.
func hardThresholds(f *kubeletv1beta1.KubeletConfiguration) map[string]string {
	if f.MergeDefaultEvictionSettings == nil || !*f.MergeDefaultEvictionSettings {
		return f.EvictionHard
	}
	merged := eviction.DefaultHard()
	maps.Copy(merged, f.EvictionHard)
	return merged
}

func gatesOf(f *kubeletv1beta1.KubeletConfiguration) map[string]string {
	gates := map[string]string{}
	for name, on := range f.FeatureGates {
		gates[name] = strconv.FormatBool(on)
	}
	return gates
}

func shutdownPeriods(f *kubeletv1beta1.KubeletConfiguration) []shutdown.Period {
	var periods []shutdown.Period
	for _, p := range f.ShutdownGracePeriodByPodPriority {
		periods = append(periods, shutdown.Period{Priority: p.Priority, Grace: time.Duration(p.ShutdownGracePeriodSeconds) * time.Second})
	}
	return periods
}

func setResources(into *corev1.ResourceList, values map[string]string) func() error {
	return func() error {
		list := corev1.ResourceList{}
		for key, value := range values {
			if err := setResource(list, key, value); err != nil {
				return err
			}
		}
		*into = list
		return nil
	}
}

// applyLogging leaves alone what a flag has set.
func (c *Config) applyLogging(f *kubeletv1beta1.KubeletConfiguration) {
	if c.Log.Format == "" {
		c.Log.Format = f.Logging.Format
	}
	if c.Log.Verbosity == 0 {
		c.Log.Verbosity = int(f.Logging.Verbosity)
	}
}

// applyAuthentication leaves alone what a flag has set.
func (c *Config) applyAuthentication(f *kubeletv1beta1.KubeletConfiguration, flagGiven func(string) bool) error {
	if f.Authentication.X509.ClientCAFile != "" && c.ClientCAFile == "" {
		c.ClientCAFile = f.Authentication.X509.ClientCAFile
	}
	if !flagGiven("authentication-token-webhook") {
		_ = setPointer(&c.WebhookTokens, f.Authentication.Webhook.Enabled)()
	}
	if !flagGiven("anonymous-auth") {
		_ = setPointer(&c.Anonymous, f.Authentication.Anonymous.Enabled)()
	}
	return checkDuration("authentication-token-webhook-cache-ttl", f.Authentication.Webhook.CacheTTL)
}

// apply takes over every field that is set, and refuses those that mean
// something we don't do.
func (c *Config) apply(file *kubeletv1beta1.KubeletConfiguration, flagGiven func(string) bool) error {
	known := map[string]field{}
	for _, f := range c.fields(file, flagGiven) {
		known[f.name] = f
	}
	var problems []error
	value := reflect.ValueOf(file).Elem()
	for i := range value.NumField() {
		name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if name == "" || value.Field(i).IsZero() {
			continue // metadata, or not set
		}
		if f, ok := known[name]; ok {
			if f.flag != "" && flagGiven(f.flag) {
				continue
			}
			if err := f.take(); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", name, err))
			}
			continue
		}
		if err := checkField(name, value.Field(i)); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(problems...)
}
