package config

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	tracingv1 "k8s.io/component-base/tracing/api/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"kctl/kubelet/internal/admit"
	"kctl/kubelet/internal/nodenetwork"
	"kctl/kubelet/internal/objects"
	"kctl/kubelet/internal/process"
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
	NodeNetwork nodenetwork.Mode
	CNIConfDir  string
	MaxPods     int32
	PodsPerCore int32 // at most, as well; zero for as many as MaxPods
	IDsPerPod   int64 // of a user namespace

	RootDir                  string
	CertDir                  string
	PodLogsDir               string
	ContainerRuntimeEndpoint string
	ImageServiceEndpoint     string // the runtime's, or not said
	RuntimeRequestTimeout    time.Duration

	// CloudProvider is "external" if a cloud's own controller completes the node;
	// ProviderID is the cloud's name for this machine.
	CloudProvider string
	ProviderID    string

	// Process is how the kubelet itself is to run.
	Process process.Settings

	// Tracing is where spans go; nil traces nothing.
	Tracing *tracingv1.TracingConfiguration

	NodeStatus  NodeStatus
	Serving     Serving
	Sources     Sources
	Cgroups     Cgroups
	Allocatable Allocatable
	Pulls       ImagePulls

	// Flags are those that the program was started with; nil for none.
	Flags *pflag.FlagSet

	ChangeDetection objects.Strategy
	SyncFrequency   time.Duration

	ClusterDNS    []string
	ClusterDomain string
	ResolvConf    string

	// MakeIPTablesUtilChains keeps others from the node's loopback.
	MakeIPTablesUtilChains bool

	FailSwapOn bool
	// ProtectKernelDefaults refuses a machine whose kernel settings are not as required;
	// nothing is set in either case.
	ProtectKernelDefaults     bool
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

// New returns the defaults: upstream's, except that the kubelet tolerates swap.
func New() *Config {
	return &Config{
		RegisterNode: true, MaxPods: 110, IDsPerPod: 65536, NodeNetwork: nodenetwork.None, CNIConfDir: "/etc/cni/net.d",
		MakeIPTablesUtilChains: true, RootDir: "/var/lib/kubelet", PodLogsDir: "/var/log/pods", CertDir: "/var/lib/kubelet/pki",
		ContainerRuntimeEndpoint: "unix:///run/containerd/containerd.sock", RuntimeRequestTimeout: 2 * time.Minute,
		Process:       process.Settings{OOMScore: -999, OpenFiles: 1000000},
		SyncFrequency: time.Minute, ClusterDomain: "cluster.local", ResolvConf: "/etc/resolv.conf",
		MaxContainerRestartPeriod: 5 * time.Minute, PodPidsLimit: -1, ChangeDetection: kubeletv1beta1.WatchChangeDetectionStrategy,
		NodeStatus: newNodeStatus(), Serving: newServing(), Sources: newSources(), Cgroups: newCgroups(),
		Allocatable: newAllocatable(), Pulls: newImagePulls(), ContainerLogs: newLogRotation(), Images: newImageGC(), Eviction: newEviction(),

		LocalStorageCapacityIsolation: true,
	}
}

// report takes note of a problem.
type report func(format string, args ...any)

// Validate returns everything that is invalid in one error.
func (c *Config) Validate() error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.Kubeconfig == "" && c.Sources.StaticPodPath == "" && c.Sources.StaticPodURL == "" {
		add("nothing to run: give --kubeconfig, --pod-manifest-path or --manifest-url")
	}
	c.validateNode(add)
	c.validatePods(add)
	c.Eviction.validate(add)
	c.Shutdown.validate(add)
	c.validateIdentity(add)
	if c.ImageServiceEndpoint != "" && c.ImageServiceEndpoint != c.ContainerRuntimeEndpoint {
		add("--image-service-endpoint=%s: not supported, images are the runtime's at --container-runtime-endpoint=%s",
			c.ImageServiceEndpoint, c.ContainerRuntimeEndpoint)
	}
	if c.CloudProvider != "" && c.CloudProvider != CloudExternal {
		add("--cloud-provider=%q: there is %s", c.CloudProvider, CloudExternal)
	}
	for _, pattern := range c.AllowedUnsafeSysctls {
		if err := admit.CheckSysctlPattern(pattern); err != nil {
			add("--allowed-unsafe-sysctls=%s: %w", pattern, err)
		}
	}
	for _, err := range tracingv1.ValidateTracingConfiguration(c.Tracing, nil, nil) {
		add("tracing: %w", err)
	}
	if err := c.checkGates(); err != nil {
		add("%w", err)
	}
	c.Pulls.validate(add)
	c.Serving.validate(add, c.Kubeconfig != "")
	c.ContainerLogs.validate(add)
	c.Images.validate(add)
	return errors.Join(problems...)
}

// validateNode checks the settings of the node and of the kubelet's process, and the
// intervals.
func (c *Config) validateNode(add report) {
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
	if c.RuntimeRequestTimeout <= 0 {
		add("--runtime-request-timeout=%s: it must be positive", c.RuntimeRequestTimeout)
	}
	if c.NodeStatus.LeaseDuration < 4*time.Second || c.NodeStatus.UpdateFrequency <= 0 || c.SyncFrequency <= 0 ||
		c.Sources.FileCheckFrequency <= 0 || c.Sources.HTTPCheckFrequency <= 0 {
		add("frequencies must be positive, and the lease at least four seconds long")
	}
}

// validatePods checks how many pods there may be, what all of them may use, and how many
// images are reported.
func (c *Config) validatePods(add report) {
	if c.MaxPods <= 0 {
		add("--max-pods=%d: at least one is needed", c.MaxPods)
	}
	if c.PodsPerCore < 0 || c.NodeStatus.MaxImages < -1 {
		add("--pods-per-core=%d can't be negative, and --node-status-max-images=%d not below -1", c.PodsPerCore, c.NodeStatus.MaxImages)
	}
	c.Cgroups.validate(add)
	c.Allocatable.validate(add, c.Cgroups.PerQOS)
	if p := c.MaxContainerRestartPeriod; p < time.Second || p > 300*time.Second {
		add("crashLoopBackOff.maxContainerRestartPeriod=%s: it must be between 1s and 300s", p)
	}
}

// validateIdentity checks how the kubelet gets its certificates.
func (c *Config) validateIdentity(add report) {
	if c.BootstrapKubeconfig != "" && c.Kubeconfig == "" {
		add("--bootstrap-kubeconfig: --kubeconfig has to say where the kubelet's own goes")
	}
	if (c.RotateCertificates || c.ServerTLSBootstrap) && c.Kubeconfig == "" {
		add("--rotate-certificates, --rotate-server-certificates: --kubeconfig is required")
	}
}
