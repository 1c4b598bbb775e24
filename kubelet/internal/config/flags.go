package config

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletapis "k8s.io/kubelet/pkg/apis"

	"kctl/kubelet/internal/cgroup"
	"kctl/proto/daemon"
)

// AddFlags binds the flags to c, with its values as their defaults.
func (c *Config) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig, "kubeconfig for the API server; without it only static pods run")
	fs.StringVar(&c.File, "config", c.File, "file with a KubeletConfiguration (kubelet.config.k8s.io/v1beta1)")
	fs.StringVar(&c.Dir, "config-dir", c.Dir, "directory of files *.conf with KubeletConfigurations that are merged into --config, in the order of their names")
	daemon.PairsVar(fs, &c.FeatureGates, "feature-gates", "", "upstream's feature gates, as they are: name=true|false,…")
	c.addCertificateFlags(fs)
	c.addSourceFlags(fs)
	c.addNodeFlags(fs)
	c.addPodFlags(fs)
	c.addRuntimeFlags(fs)
	c.addDiskFlags(fs)
	c.addServingFlags(fs)
	c.Log.AddFlags(fs)
	daemon.AddUnused(fs, daemon.UnusedLogging...)
	daemon.AddUnused(fs, unused...)
}

// addCertificateFlags: by what the API server knows the kubelet, and clients know it.
func (c *Config) addCertificateFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.BootstrapKubeconfig, "bootstrap-kubeconfig", c.BootstrapKubeconfig, "kubeconfig for getting a client certificate, and with it --kubeconfig, while there is none that is valid")
	fs.BoolVar(&c.RotateCertificates, "rotate-certificates", c.RotateCertificates, "get a new client certificate before the old one expires")
	fs.BoolVar(&c.ServerTLSBootstrap, "rotate-server-certificates", c.ServerTLSBootstrap, "ask for the serving certificate, too, and for a new one before it expires; somebody has to approve it")
}

// addSourceFlags: where pods come from besides the API server.
func (c *Config) addSourceFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.ManifestPath, "pod-manifest-path", c.ManifestPath, "manifest, or directory of manifests, of static pods")
	fs.StringVar(&c.ManifestURL, "manifest-url", c.ManifestURL, "URL of a manifest of static pods")
	fs.Var((*headerFlag)(&c.ManifestHeader), "manifest-url-header", "header for --manifest-url: name:value,…")
	fs.DurationVar(&c.FileEvery, "file-check-frequency", c.FileEvery, "how often --pod-manifest-path is read at least")
	fs.DurationVar(&c.HTTPEvery, "http-check-frequency", c.HTTPEvery, "how often --manifest-url is read")
}

// addNodeFlags: what the API server is told of the node, and what connects it to others.
func (c *Config) addNodeFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.CloudProvider, "cloud-provider", c.CloudProvider, "external: the node is tainted until a cloud's controller has completed it")
	fs.StringVar(&c.ProviderID, "provider-id", c.ProviderID, "what the cloud calls this machine, noted in the Node")
	fs.StringVar(&c.NodeName, "hostname-override", c.NodeName, "name of the node (default: the host name)")
	fs.StringVar(&c.NodeIP, "node-ip", c.NodeIP, "address of the node, or one of each family, separated by a comma (default: that of the default route)")
	fs.Var((*labelsFlag)(&c.NodeLabels), "node-labels", "labels for the node when it registers: key=value,…")
	fs.Var((*taintsFlag)(&c.Taints), "register-with-taints", "taints for the node when it registers: key=value:effect,…")
	fs.BoolVar(&c.Register, "register-node", c.Register, "register the node with the API server")
	fs.StringVar(&c.PodCIDR, "pod-cidr", c.PodCIDR, "addresses of the node's pods, noted in the Node")
	fs.StringVar((*string)(&c.NodeNetwork), "node-network", string(c.NodeNetwork), "connect the pods of all nodes: routes (nodes share a link), vxlan (they don't have to), or none (somebody else's CNI configuration does)")
	fs.StringVar(&c.CNIConfDir, "cni-conf-dir", c.CNIConfDir, "where --node-network writes the CNI configuration that the runtime reads")
	fs.Int32Var(&c.MaxPods, "max-pods", c.MaxPods, "most pods on the node")
	fs.DurationVar(&c.StatusEvery, "node-status-update-frequency", c.StatusEvery, "how often the node's status is looked at")
	fs.Var((*secondsFlag)(&c.LeaseDuration), "node-lease-duration-seconds", "duration of the node's lease, renewed four times in it")
	fs.Var((*resourcesFlag)(&c.SystemReserved), "system-reserved", "resources kept for the system: cpu=200m,memory=500Mi,pid=1000,…")
	fs.Var((*resourcesFlag)(&c.KubeReserved), "kube-reserved", "resources kept for Kubernetes' own programs: cpu=200m,memory=150Mi,…")
	fs.BoolVar(&c.ProtectKernel, "protect-kernel-defaults", c.ProtectKernel, "do not start on a machine whose kernel is set otherwise than Kubernetes wants it (vm.overcommit_memory=1, kernel.panic=10, …)")
	fs.BoolVar(&c.FailSwapOn, "fail-swap-on", c.FailSwapOn, "do not start on a machine with swap")
}

// addPodFlags: what holds for every pod.
func (c *Config) addPodFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&c.SyncEvery, "sync-frequency", c.SyncEvery, "how often a pod in order is looked at")
	fs.StringVar(&c.CgroupDriver, "cgroup-driver", c.CgroupDriver, "who makes control groups, cgroupfs or systemd, where the container runtime does not tell which it has")
	fs.StringVar(&c.CgroupRoot, "cgroup-root", c.CgroupRoot, "cgroup below which pods' cgroups are made")
	fs.BoolVar(&c.CgroupsPerQOS, "cgroups-per-qos", c.CgroupsPerQOS, "make a cgroup per QoS class and pod")
	fs.StringSliceVar(&c.ClusterDNS, "cluster-dns", c.ClusterDNS, "name servers for pods with DNS policy ClusterFirst")
	fs.StringVar(&c.ClusterDomain, "cluster-domain", c.ClusterDomain, "domain of the cluster")
	fs.StringVar(&c.ResolvConf, "resolv-conf", c.ResolvConf, "resolver configuration that pods start from")
	fs.BoolVar(&c.SeccompDefault, "seccomp-default", c.SeccompDefault, "confine containers by the runtime's seccomp profile where they say nothing")
	fs.StringSliceVar(&c.UnsafeSysctls, "allowed-unsafe-sysctls", c.UnsafeSysctls, "sysctls that pods may set besides the safe ones: net.core.somaxconn,kernel.msg*,…")
	fs.Int64Var(&c.PodPidsLimit, "pod-max-pids", c.PodPidsLimit, "most processes of a pod; 0 or -1 for as many as the node has")
}

// addRuntimeFlags: who runs containers, and whence their images come.
func (c *Config) addRuntimeFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.RuntimeEndpoint, "container-runtime-endpoint", c.RuntimeEndpoint, "socket of the CRI v1 runtime")
	fs.DurationVar(&c.RuntimeTimeout, "runtime-request-timeout", c.RuntimeTimeout, "deadline of calls to the runtime")
	fs.StringVar(&c.ImageEndpoint, "image-service-endpoint", c.ImageEndpoint, "socket of the CRI v1 image service: the runtime's")
	fs.StringVar(&c.CredentialConfig, "image-credential-provider-config", c.CredentialConfig, "file with a CredentialProviderConfig (kubelet.config.k8s.io/v1), or a directory of them: plugins that have credentials for images")
	fs.StringVar(&c.CredentialBinDir, "image-credential-provider-bin-dir", c.CredentialBinDir, "directory of those plugins' programs")
	fs.BoolVar(&c.SerializePulls, "serialize-image-pulls", c.SerializePulls, "pull images one after the other")
}

// addDiskFlags: what lies where, and what goes when there is too much of it.
func (c *Config) addDiskFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.RootDir, "root-dir", c.RootDir, "directory for the kubelet's files")
	fs.StringVar(&c.PodLogsDir, "pod-logs-dir", c.PodLogsDir, "directory for the logs of containers")
	fs.Var((*quantityFlag)(&c.Logs.MaxSize), "container-log-max-size", "size that a container's log may reach before it is moved aside")
	fs.Int32Var(&c.Logs.MaxFiles, "container-log-max-files", c.Logs.MaxFiles, "log files that are kept of one container")
	fs.Int32Var(&c.Images.High, "image-gc-high-threshold", c.Images.High, "percent of their disk in use above which unused images are removed; 100 for never")
	fs.Int32Var(&c.Images.Low, "image-gc-low-threshold", c.Images.Low, "percent of their disk in use down to which unused images are removed")
	fs.DurationVar(&c.Images.MinAge, "minimum-image-ttl-duration", c.Images.MinAge, "how long an unused image is kept at least")
	fs.Var(thresholdsFlag(&c.Eviction.Hard), "eviction-hard", "how little may be left before pods are evicted at once: memory.available<100Mi,nodefs.available<10%,…; empty for never")
	fs.Var(thresholdsFlag(&c.Eviction.Soft), "eviction-soft", "how little may be left before pods are evicted after a while: memory.available<300Mi,…")
	fs.Var(settingsFlag(&c.Eviction.SoftGrace), "eviction-soft-grace-period", "after how long: memory.available=1m30s,…")
	fs.Var(settingsFlag(&c.Eviction.MinimumReclaim), "eviction-minimum-reclaim", "how much more must be free before evicting ends: nodefs.available=1Gi,…")
	fs.Int32Var(&c.Eviction.MaxPodGracePeriod, "eviction-max-pod-grace-period", c.Eviction.MaxPodGracePeriod, "most seconds that a pod gets that is evicted after a while")
	fs.DurationVar(&c.Eviction.TransitionPeriod, "eviction-pressure-transition-period", c.Eviction.TransitionPeriod, "how long the node says that it is short after it was")
}

// addServingFlags: what the kubelet serves, and to whom.
func (c *Config) addServingFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&c.EnableServer, "enable-server", c.EnableServer, "listen on --port")
	fs.StringVar(&c.Address, "address", c.Address, "address that the kubelet serves on")
	fs.Int32Var(&c.Port, "port", c.Port, "port that the kubelet serves on; 0 for any that is free")
	fs.StringVar(&c.CertDir, "cert-dir", c.CertDir, "where a serving certificate is made if none is given")
	fs.StringVar(&c.TLSCertFile, "tls-cert-file", c.TLSCertFile, "serving certificate")
	fs.StringVar(&c.TLSKeyFile, "tls-private-key-file", c.TLSKeyFile, "key of the serving certificate")
	c.TLS.AddFlags(fs)
	fs.StringVar(&c.ClientCAFile, "client-ca-file", c.ClientCAFile, "CA of the clients that the kubelet knows by certificate")
	fs.BoolVar(&c.Anonymous, "anonymous-auth", c.Anonymous, "let requests without credentials pass as system:anonymous")
	fs.BoolVar(&c.WebhookTokens, "authentication-token-webhook", c.WebhookTokens, "ask the API server about bearer tokens")
	fs.StringVar(&c.Authorization, "authorization-mode", c.Authorization, "who may do what on the kubelet's port: Webhook or AlwaysAllow")
	fs.StringVar(&c.HealthzAddress, "healthz-bind-address", c.HealthzAddress, "address of the health port")
	fs.Int32Var(&c.HealthzPort, "healthz-port", c.HealthzPort, "health port, plain HTTP; 0 for none")
}

// pairs reads "a=b,c=d".
func pairs(text, separator string, take func(key, value string) error) error {
	return eachPair(text, separator, false, take)
}

// eachPair takes a key by itself, too, where that is allowed.
func eachPair(text, separator string, alone bool, take func(key, value string) error) error {
	for _, part := range strings.Split(text, ",") {
		if part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, separator)
		if !ok && !alone {
			return fmt.Errorf("%q is not key%svalue", part, separator)
		}
		if err := take(strings.TrimSpace(key), strings.TrimSpace(value)); err != nil {
			return err
		}
	}
	return nil
}

type labelsFlag map[string]string

func (f *labelsFlag) String() string { return joined(*f, "=") }
func (f *labelsFlag) Type() string   { return "labels" }
func (f *labelsFlag) Set(text string) error {
	if *f == nil {
		*f = labelsFlag{}
	}
	return eachPair(text, "=", true, func(key, value string) error {
		if kubernetesLabel(key) && !kubeletapis.IsKubeletLabel(key) {
			return fmt.Errorf("label %s: of the labels of kubernetes.io and k8s.io a kubelet may only give those below %s and %s",
				key, strings.Join(kubeletapis.KubeletLabelNamespaces(), " and "), strings.Join(kubeletapis.KubeletLabels(), ", "))
		}
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
			return fmt.Errorf("label %s=%s: %s", key, value, strings.Join(problems, "; "))
		}
		(*f)[key] = value
		return nil
	})
}

// kubernetesLabel says that a label is one of Kubernetes' own.
func kubernetesLabel(key string) bool {
	namespace, _, _ := strings.Cut(key, "/")
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io"}, func(domain string) bool {
		return namespace == domain || strings.HasSuffix(namespace, "."+domain)
	}) && strings.Contains(key, "/")
}

type taintsFlag []corev1.Taint

func (f *taintsFlag) String() string { return "" }
func (f *taintsFlag) Type() string   { return "taints" }
func (f *taintsFlag) Set(text string) error {
	if text == "" {
		return nil
	}
	for _, part := range strings.Split(text, ",") {
		rest, effect, ok := strings.Cut(part, ":")
		switch corev1.TaintEffect(effect) {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			ok = false
		}
		if !ok {
			return fmt.Errorf("taint %q is not key=value:effect with the effect NoSchedule, PreferNoSchedule or NoExecute", part)
		}
		key, value, _ := strings.Cut(rest, "=")
		taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
		if slices.ContainsFunc(*f, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			return fmt.Errorf("taint %q: there is another with the key %s and the effect %s", part, key, effect)
		}
		*f = append(*f, taint)
	}
	return nil
}

type headerFlag http.Header

func (f *headerFlag) String() string { return "" } // they may be credentials
func (f *headerFlag) Type() string   { return "headers" }
func (f *headerFlag) Set(text string) error {
	if *f == nil {
		*f = headerFlag{}
	}
	return pairs(text, ":", func(key, value string) error {
		http.Header(*f).Add(key, value)
		return nil
	})
}

type resourcesFlag corev1.ResourceList

func (f *resourcesFlag) String() string {
	texts := map[string]string{}
	for name, quantity := range *f {
		texts[string(name)] = quantity.String()
	}
	return joined(texts, "=")
}
func (f *resourcesFlag) Type() string { return "resources" }
func (f *resourcesFlag) Set(text string) error {
	if *f == nil {
		*f = resourcesFlag{}
	}
	return pairs(text, "=", func(key, value string) error { return setResource(corev1.ResourceList(*f), key, value) })
}

func setResource(list corev1.ResourceList, key, value string) error {
	quantity, err := resource.ParseQuantity(value)
	if err != nil || quantity.Sign() < 0 {
		return fmt.Errorf("%s=%s is not a quantity", key, value)
	}
	switch name := corev1.ResourceName(key); name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, cgroup.Processes:
		list[name] = quantity
		return nil
	}
	return fmt.Errorf("%s: only cpu, memory, ephemeral-storage and pid can be reserved", key)
}

// pairsFlag is a list of pairs, "thresholds" (signal<value) or "settings"
// (signal=value). What is given first goes in the place of the default, an empty list
// too; what is given then is added.
type pairsFlag struct {
	into            *map[string]string
	separator, kind string
	given           bool
}

func thresholdsFlag(into *map[string]string) *pairsFlag {
	return &pairsFlag{into: into, separator: "<", kind: "thresholds"}
}

func settingsFlag(into *map[string]string) *pairsFlag {
	return &pairsFlag{into: into, separator: "=", kind: "settings"}
}

func (f *pairsFlag) String() string {
	if f.into == nil {
		return ""
	}
	return joined(*f.into, f.separator)
}
func (f *pairsFlag) Type() string { return f.kind }
func (f *pairsFlag) Set(text string) error {
	if !f.given {
		*f.into, f.given = map[string]string{}, true
	}
	return pairs(text, f.separator, func(key, value string) error {
		(*f.into)[key] = value
		return nil
	})
}

// joined is what Set of a list of pairs takes, in the order of the keys.
func joined(values map[string]string, separator string) string {
	pairs := make([]string, 0, len(values))
	for key, value := range values {
		pairs = append(pairs, key+separator+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

type quantityFlag resource.Quantity

func (f *quantityFlag) String() string { return (*resource.Quantity)(f).String() }
func (f *quantityFlag) Type() string   { return "quantity" }
func (f *quantityFlag) Set(text string) error {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return fmt.Errorf("%q is not a quantity", text)
	}
	*f = quantityFlag(quantity)
	return nil
}

type secondsFlag time.Duration

func (f *secondsFlag) String() string { return fmt.Sprint(int(time.Duration(*f).Seconds())) }
func (f *secondsFlag) Type() string   { return "seconds" }
func (f *secondsFlag) Set(text string) error {
	seconds, err := time.ParseDuration(text + "s")
	if err != nil {
		return fmt.Errorf("%q is not a number of seconds", text)
	}
	*f = secondsFlag(seconds)
	return nil
}
