package config

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	tracingv1 "k8s.io/component-base/tracing/api/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"kctl/kubelet/internal/admit"
	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/nodenetwork"
	"kctl/kubelet/internal/objects"
	"kctl/kubelet/internal/process"
	"kctl/kubelet/internal/pullrecords"
	"kctl/kubelet/internal/server/auth"
	"kctl/kubelet/internal/shutdown"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// Config is everything that can be set. New gives the defaults.
type Config struct {
	Kubeconfig string
	// BootstrapKubeconfig has the credentials with which those of Kubeconfig are obtained.
	BootstrapKubeconfig string
	RotateCertificates  bool
	ServerTLSBootstrap  bool
	ConfigFile          string // of the KubeletConfiguration
	ConfigDir           string // of files that are merged into it

	NodeName           string
	NodeIP             string
	NodeLabels         map[string]string
	RegisterWithTaints []corev1.Taint
	RegisterNode       bool
	PodCIDR            string
	// NodeNetwork is how the pods of several nodes are connected, and CNIConfDir
	// where its configuration for the runtime goes.
	NodeNetwork         nodenetwork.Mode
	CNIConfDir          string
	MaxPods             int32
	PodsPerCore         int32 // at most, as well; zero for as many as MaxPods
	NodeStatusMaxImages int32 // reported in the node's status; -1 for all
	IDsPerPod           int64 // of a user namespace

	RootDir                  string
	PodLogsDir               string
	ContainerRuntimeEndpoint string
	ImageServiceEndpoint     string // the runtime's, or not said
	RuntimeRequestTimeout    time.Duration

	// ImageCredentialProviderConfig names the plugins that provide credentials for images, and
	// ImageCredentialProviderBinDir the directory of their programs.
	ImageCredentialProviderConfig string
	ImageCredentialProviderBinDir string
	// ImagePullCredentialsVerification is the policy about who may use images that are on the node.
	ImagePullCredentialsVerification pullrecords.Policy

	// CloudProvider is "external" if a cloud's own controller completes the node;
	// ProviderID is the cloud's name for this machine.
	CloudProvider string
	ProviderID    string

	EnableServer bool // without it nothing listens on Port
	Address      string
	Port         int32
	ReadOnlyPort int32 // plain HTTP, without authentication; 0 for none
	CertDir      string
	TLSCertFile  string
	TLSKeyFile   string

	TLS daemon.TLSOptions

	// Process is how the kubelet itself is to run.
	Process process.Settings

	// Tracing is where spans go; nil traces nothing.
	Tracing *tracingv1.TracingConfiguration

	// Who may use the kubelet's port.
	ClientCAFile               string
	AnonymousAuth              bool
	AuthenticationTokenWebhook bool
	AuthorizationMode          string // Webhook or AlwaysAllow
	// CacheTTLs is how long the API server's answers to both are cached.
	CacheTTLs auth.CacheTTLs

	// What the kubelet's port shows of the running program, and allows to be changed.
	EnableDebuggingHandlers   bool // all that leads into pods, and the three below
	EnableProfilingHandler    bool
	EnableContentionProfiling bool // is in the profiles
	EnableDebugFlagsHandler   bool
	EnableSystemLogHandler    bool // of the machine: /var/log
	EnableSystemLogQuery      bool // of services of the machine
	// VolumeStatsAggPeriod is how often volumes are measured for clients that ask; never, if it
	// is not positive.
	VolumeStatsAggPeriod time.Duration
	// Flags are those that the program was started with; nil for none.
	Flags *pflag.FlagSet

	HealthzAddress string
	HealthzPort    int32

	CgroupDriver  string
	CgroupRoot    string
	CgroupsPerQOS bool
	FailCgroupV1  bool
	// EnforceNodeAllocatable says what limits are enforced on: all pods together, the daemons in
	// the groups below, or nothing.
	EnforceNodeAllocatable []string
	// SystemReservedCgroup and KubeReservedCgroup are the control groups of the machine's and
	// of Kubernetes' daemons, which others have made.
	SystemReservedCgroup, KubeReservedCgroup string
	CPUCFSQuota                              bool // limits of cpu are enforced
	CPUCFSQuotaPeriod                        time.Duration
	// LimitedSwap lets containers of burstable pods swap, with cgroup v2.
	LimitedSwap bool
	// SingleProcessOOMKill makes the kernel kill one process of a container that is out of
	// memory, instead of all, where it can kill all (cgroup v2).
	SingleProcessOOMKill bool

	StaticPodPath, StaticPodURL            string
	StaticPodURLHeader                     http.Header
	FileCheckFrequency, HTTPCheckFrequency time.Duration

	ChangeDetection           objects.Strategy
	SyncFrequency             time.Duration
	NodeStatusUpdateFrequency time.Duration
	NodeStatusReportFrequency time.Duration
	LeaseDuration             time.Duration

	ClusterDNS    []string
	ClusterDomain string
	ResolvConf    string

	// MakeIPTablesUtilChains keeps others from the node's loopback.
	MakeIPTablesUtilChains bool

	FailSwapOn bool
	// ProtectKernelDefaults refuses a machine whose kernel settings are not as required;
	// nothing is set in either case.
	ProtectKernelDefaults     bool
	SystemReserved            corev1.ResourceList
	KubeReserved              corev1.ResourceList
	ReservedSystemCPUs        string // no cpu of these is for pods, whatever the two above say
	MaxParallelImagePulls     int
	SerializeImagePulls       bool // one at a time, where MaxParallelImagePulls does not say
	SeccompDefault            bool
	AllowedUnsafeSysctls      []string
	FeatureGates              map[string]string
	MaxContainerRestartPeriod time.Duration
	PodPidsLimit              int64

	ContainerLogs LogRotation
	Images        ImageGC
	Eviction      Eviction
	// LocalStorageCapacityIsolation is off where the size of a file system can't be known.
	LocalStorageCapacityIsolation bool
	Shutdown                      Shutdown

	Log daemon.LogOptions
}

// CloudExternal is the only CloudProvider.
const CloudExternal = "external"

// LogRotation is how large the logs of containers may get.
type LogRotation struct {
	MaxSize  resource.Quantity // of one file
	MaxFiles int32             // of one container
	Workers  int32
	Interval time.Duration
}

// ImageGC is when unused images are removed.
type ImageGC struct {
	HighThresholdPercent, LowThresholdPercent int32 // percent of their disk that is in use
	MinimumAge, MaximumAge                    time.Duration
}

// Eviction is when the node evicts pods because it is short of something.
type Eviction struct {
	eviction.Settings
	MaxPodGracePeriod int32 // seconds, for soft thresholds
	// TransitionPeriod is how long the node's conditions stay after it was short.
	TransitionPeriod time.Duration
}

// Shutdown is how long pods get when the machine is shut down; if empty, as
// long as the system itself gives them.
type Shutdown struct {
	GracePeriod, CriticalPodsGracePeriod time.Duration // the second is part of the first
	GracePeriodByPodPriority             []shutdown.Period
}

// Periods are the pods' shares, by priority.
func (s Shutdown) Periods() ([]shutdown.Period, error) {
	return shutdown.Periods(s.GracePeriod, s.CriticalPodsGracePeriod, s.GracePeriodByPodPriority)
}

// New returns the defaults: upstream's, except that the kubelet tolerates swap.
func New() *Config {
	return &Config{
		RegisterNode: true, MaxPods: 110, NodeStatusMaxImages: 50, IDsPerPod: 65536, NodeNetwork: nodenetwork.None, CNIConfDir: "/etc/cni/net.d",
		MakeIPTablesUtilChains: true, RootDir: "/var/lib/kubelet", PodLogsDir: "/var/log/pods", CertDir: "/var/lib/kubelet/pki",
		ContainerRuntimeEndpoint: "unix:///run/containerd/containerd.sock", RuntimeRequestTimeout: 2 * time.Minute,
		ImagePullCredentialsVerification: pullrecords.Policy{Verify: kubeletv1beta1.NeverVerifyPreloadedImages},
		EnableServer:                     true, Address: "0.0.0.0", Port: 10250, AuthorizationMode: "Webhook", AuthenticationTokenWebhook: true,
		HealthzAddress: "127.0.0.1", HealthzPort: 10248, EnableDebuggingHandlers: true, EnableProfilingHandler: true,
		EnableDebugFlagsHandler: true, EnableSystemLogHandler: true,
		VolumeStatsAggPeriod: time.Minute, CacheTTLs: auth.DefaultCacheTTLs, Process: process.Settings{OOMScore: -999, OpenFiles: 1000000},
		CgroupDriver: cgroup.Cgroupfs, CgroupsPerQOS: true, EnforceNodeAllocatable: []string{enforcePods},
		CPUCFSQuota: true, CPUCFSQuotaPeriod: 100 * time.Millisecond,
		FileCheckFrequency: 20 * time.Second, HTTPCheckFrequency: 20 * time.Second, SyncFrequency: time.Minute,
		NodeStatusUpdateFrequency: 10 * time.Second, NodeStatusReportFrequency: 5 * time.Minute, LeaseDuration: 40 * time.Second,
		ClusterDomain: "cluster.local", ResolvConf: "/etc/resolv.conf",
		MaxContainerRestartPeriod: 5 * time.Minute, PodPidsLimit: -1, ChangeDetection: kubeletv1beta1.WatchChangeDetectionStrategy,
		ContainerLogs: LogRotation{MaxSize: resource.MustParse("10Mi"), MaxFiles: 5, Workers: 1, Interval: 10 * time.Second},
		Images:        ImageGC{HighThresholdPercent: 85, LowThresholdPercent: 80, MinimumAge: 2 * time.Minute},
		Eviction:      Eviction{Settings: eviction.Settings{Hard: eviction.DefaultHard()}, TransitionPeriod: 5 * time.Minute},

		LocalStorageCapacityIsolation: true,
	}
}

// Validate returns everything that is invalid in one error.
func (c *Config) Validate() error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.Kubeconfig == "" && c.StaticPodPath == "" && c.StaticPodURL == "" {
		add("nothing to run: give --kubeconfig, --pod-manifest-path or --manifest-url")
	}
	c.validateNode(add)
	c.validatePods(add)
	c.validateEnds(add)
	c.validateIdentity(add)
	if c.ImageServiceEndpoint != "" && c.ImageServiceEndpoint != c.ContainerRuntimeEndpoint {
		add("--image-service-endpoint=%s: not supported, images are the runtime's at --container-runtime-endpoint=%s",
			c.ImageServiceEndpoint, c.ContainerRuntimeEndpoint)
	}
	if (c.ImageCredentialProviderConfig == "") != (c.ImageCredentialProviderBinDir == "") {
		add("--image-credential-provider-config and --image-credential-provider-bin-dir go together")
	}
	if c.CloudProvider != "" && c.CloudProvider != CloudExternal {
		add("--cloud-provider=%q: there is %s", c.CloudProvider, CloudExternal)
	}
	if err := c.ImagePullCredentialsVerification.Validate(); err != nil {
		add("%w", err)
	}
	for _, pattern := range c.AllowedUnsafeSysctls {
		if err := admit.CheckSysctlPattern(pattern); err != nil {
			add("--allowed-unsafe-sysctls=%s: %w", pattern, err)
		}
	}
	if c.SerializeImagePulls && c.MaxParallelImagePulls > 1 {
		add("maxParallelImagePulls=%d: serializeImagePulls must be false for more than one", c.MaxParallelImagePulls)
	}
	for _, err := range tracingv1.ValidateTracingConfiguration(c.Tracing, nil, nil) {
		add("tracing: %w", err)
	}
	if err := c.checkGates(); err != nil {
		add("%w", err)
	}
	c.validateServing(add)
	c.validateDisk(add)
	return errors.Join(problems...)
}

// validateEnds checks when the node ends pods.
func (c *Config) validateEnds(add func(format string, args ...any)) {
	if _, err := c.Eviction.Thresholds(); err != nil {
		add("%w", err)
	}
	if _, err := c.Shutdown.Periods(); err != nil {
		add("%w", err)
	}
	if c.Eviction.MaxPodGracePeriod < 0 || c.Eviction.TransitionPeriod < 0 {
		add("evictionMaxPodGracePeriod and evictionPressureTransitionPeriod can't be negative")
	}
}

// validateNode checks the settings of the node and of the kubelet's process, and the
// intervals.
func (c *Config) validateNode(add func(format string, args ...any)) {
	for flag, path := range map[string]string{"--root-dir": c.RootDir, "--pod-logs-dir": c.PodLogsDir, "--cert-dir": c.CertDir,
		"--cni-conf-dir": c.CNIConfDir} {
		if !filepath.IsAbs(path) {
			add("%s=%q: an absolute path is needed", flag, path)
		}
	}
	if c.NodeIP != "" {
		if _, err := core.ParseNodeIPs(c.NodeIP); err != nil {
			add("--node-ip: %w", err)
		}
	}
	for _, ip := range c.ClusterDNS {
		if net.ParseIP(ip) == nil {
			add("--cluster-dns: %q is not an IP address", ip)
		}
	}
	for i := range c.RegisterWithTaints {
		if err := checkTaint(&c.RegisterWithTaints[i]); err != nil {
			add("--register-with-taints: %w", err)
		}
		if hasTaint(c.RegisterWithTaints[:i], &c.RegisterWithTaints[i]) {
			add("--register-with-taints: there are two with the key %s and the effect %s",
				c.RegisterWithTaints[i].Key, c.RegisterWithTaints[i].Effect)
		}
	}
	if !slices.Contains(nodenetwork.Modes, c.NodeNetwork) {
		add("--node-network=%q: unknown; there are %q", c.NodeNetwork, nodenetwork.Modes)
	}
	if c.NodeNetwork != nodenetwork.None && c.Kubeconfig == "" {
		add("--node-network=%s: --kubeconfig is required: nodes find each other through the API server", c.NodeNetwork)
	}
	if err := c.Process.Validate(); err != nil {
		add("%w", err)
	}
	if c.CgroupDriver != cgroup.Cgroupfs && c.CgroupDriver != cgroup.Systemd {
		add("--cgroup-driver=%q: there are %s and %s", c.CgroupDriver, cgroup.Cgroupfs, cgroup.Systemd)
	}
	if c.RuntimeRequestTimeout <= 0 {
		add("--runtime-request-timeout=%s: it must be positive", c.RuntimeRequestTimeout)
	}
	if c.LeaseDuration < 4*time.Second || c.NodeStatusUpdateFrequency <= 0 || c.SyncFrequency <= 0 || c.FileCheckFrequency <= 0 ||
		c.HTTPCheckFrequency <= 0 {
		add("frequencies must be positive, and the lease at least four seconds long")
	}
}

// validatePods checks how many pods there may be, what all of them may use, and how many
// images are reported.
func (c *Config) validatePods(add func(format string, args ...any)) {
	if c.MaxPods <= 0 {
		add("--max-pods=%d: at least one is needed", c.MaxPods)
	}
	if c.PodsPerCore < 0 || c.NodeStatusMaxImages < -1 {
		add("--pods-per-core=%d can't be negative, and --node-status-max-images=%d not below -1", c.PodsPerCore, c.NodeStatusMaxImages)
	}
	c.validateEnforcement(add)
	if _, err := c.Reserved(); err != nil {
		add("%w", err)
	}
	if p := c.MaxContainerRestartPeriod; p < time.Second || p > 300*time.Second {
		add("crashLoopBackOff.maxContainerRestartPeriod=%s: it must be between 1s and 300s", p)
	}
	if p := c.CPUCFSQuotaPeriod; p != 0 && (p < time.Millisecond || p > time.Second) {
		add("--cpu-cfs-quota-period=%s: it must be between 1ms and 1s", p)
	}
}

// validateIdentity checks how the kubelet gets its certificates.
func (c *Config) validateIdentity(add func(format string, args ...any)) {
	if c.BootstrapKubeconfig != "" && c.Kubeconfig == "" {
		add("--bootstrap-kubeconfig: --kubeconfig has to say where the kubelet's own goes")
	}
	if (c.RotateCertificates || c.ServerTLSBootstrap) && c.Kubeconfig == "" {
		add("--rotate-certificates, --rotate-server-certificates: --kubeconfig is required")
	}
}

// validateServing checks what the kubelet serves, and to whom.
func (c *Config) validateServing(add func(format string, args ...any)) {
	for flag, address := range map[string]string{"--address": c.Address, "--healthz-bind-address": c.HealthzAddress} {
		if net.ParseIP(address) == nil {
			add("%s=%q is not an IP address", flag, address)
		}
	}
	for flag, port := range map[string]int32{"--port": c.Port, "--healthz-port": c.HealthzPort, "--read-only-port": c.ReadOnlyPort} {
		if port < 0 || port > 65535 {
			add("%s=%d is not a port", flag, port)
		}
	}
	if c.AuthorizationMode != "Webhook" && c.AuthorizationMode != "AlwaysAllow" {
		add("authorization.mode=%q: only Webhook and AlwaysAllow are supported", c.AuthorizationMode)
	}
	if c.AnonymousAuth && c.Kubeconfig == "" && c.AuthorizationMode == "Webhook" {
		add("--anonymous-auth would let everybody do everything, because without --kubeconfig there is no API server to ask; " +
			"--authorization-mode=AlwaysAllow says that this is wanted")
	}
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		add("--tls-cert-file and --tls-private-key-file go together")
	}
	if err := c.TLS.Validate(); err != nil {
		add("%w", err)
	}
	if c.EnableSystemLogQuery && !c.EnableSystemLogHandler {
		add("enableSystemLogQuery=true: it needs enableSystemLogHandler, which is off")
	}
}
