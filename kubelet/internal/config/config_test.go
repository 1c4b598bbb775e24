package config

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"kctl/kubelet/internal/objects"
)

const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

func load(t *testing.T, file string, args ...string) (*Config, error) {
	t.Helper()
	c := New()
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	c.AddFlags(fs)
	if file != "" {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config="+path)
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if err := c.Load(fs); err != nil {
		return nil, err
	}
	return c, c.Validate()
}

func TestFlagsWinOverTheFileAndTheFileOverDefaults(t *testing.T) {
	c, err := load(t, header+`
maxPods: 7
syncFrequency: 2m
clusterDNS: [10.0.0.10]
staticPodPath: /from/file
authentication: {x509: {clientCAFile: /ca}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
systemReserved: {cpu: 100m}
cpuManagerPolicy: none
serializeImagePulls: false
podPidsLimit: 99
containerLogMaxSize: 1Mi
containerLogMaxFiles: 3
imageGCHighThresholdPercent: 70
imageMaximumGCAge: 24h
evictionHard: {memory.available: 1Gi}
evictionSoft: {memory.available: 2Gi}
evictionSoftGracePeriod: {memory.available: 1m}
evictionPressureTransitionPeriod: 30s
mergeDefaultEvictionSettings: true
logging: {format: json}
enforceNodeAllocatable: [pods]
`, "--pod-manifest-path=/from/flag", "--node-lease-duration-seconds=20", "--node-labels=a=b,c=d",
		"--register-with-taints=k=v:NoSchedule", "--manifest-url-header=X-A:1", "--image-gc-low-threshold=60", "--container-log-max-files=4",
		"--eviction-soft=memory.available<3Gi", "--eviction-minimum-reclaim=nodefs.available=1Gi")
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxPods != 7 || c.SyncFrequency != 2*time.Minute || c.Sources.StaticPodPath != "/from/flag" || c.NodeStatus.LeaseDuration != 20*time.Second {
		t.Errorf("%+v", c)
	}
	if c.Serving.ClientCAFile != "/ca" || c.Serving.AuthenticationTokenWebhook || c.Serving.AuthorizationMode != "AlwaysAllow" ||
		c.Allocatable.SystemReserved.Cpu().String() != "100m" {
		t.Errorf("%+v", c)
	}
	if c.ContainerLogs.MaxSize.String() != "1Mi" || c.ContainerLogs.MaxFiles != 4 || c.Images.HighThresholdPercent != 70 || c.Images.LowThresholdPercent != 60 ||
		c.Images.MaximumAge != 24*time.Hour {
		t.Errorf("%+v %+v", c.ContainerLogs, c.Images)
	}
	if e := c.Eviction; e.Hard["memory.available"] != "1Gi" || e.Hard["nodefs.available"] != "10%" || e.Soft["memory.available"] != "3Gi" ||
		e.SoftGrace["memory.available"] != "1m" || e.MinimumReclaim["nodefs.available"] != "1Gi" || e.TransitionPeriod != 30*time.Second {
		t.Errorf("%+v", e)
	}
	if c.PodPidsLimit != 99 || c.Log.Format != "json" {
		t.Errorf("%+v", c)
	}
	if c.NodeLabels["c"] != "d" || len(c.RegisterWithTaints) != 1 || c.Sources.StaticPodURLHeader.Get("X-A") != "1" || c.RootDir != "/var/lib/kubelet" {
		t.Errorf("%+v", c)
	}
}

func TestWhatIsRefused(t *testing.T) {
	const kubeconfig = "--kubeconfig=/k"
	for _, c := range []struct {
		file string
		args []string
		want string
	}{
		{header + "maxPodz: 3", []string{kubeconfig}, "maxPodz"},
		{header + "maxPods: many", []string{kubeconfig}, "maxPods"},
		{header + "cpuManagerPolicy: static", []string{kubeconfig}, "cpuManagerPolicy: not supported"},
		{header + "evictionSoft: {memory.available: 1Gi}", []string{kubeconfig}, "needs its grace period"},
		{header + "containerLogMaxSize: large", []string{kubeconfig}, "containerLogMaxSize"},
		{header + "memorySwap: {swapBehavior: LimitedSwap}", []string{kubeconfig}, `memorySwap: swapBehavior="LimitedSwap": it needs cgroup v2`},
		{header + "enforceNodeAllocatable: [pods, system-reserved]", []string{kubeconfig},
			`--enforce-node-allocatable=system-reserved: --system-reserved-cgroup must say`},
		{header + "featureGates: {X: true}", []string{kubeconfig}, "unknown feature gate"},
		{header + "crashLoopBackOff: {maxContainerRestartPeriod: 0s}", []string{kubeconfig}, "maxContainerRestartPeriod=0s: it must be between 1s and 300s"},
		{header + "crashLoopBackOff: {maxContainerRestartPeriod: 301s}", []string{kubeconfig}, "maxContainerRestartPeriod=5m1s: it must be between 1s and 300s"},
		{header + "maxParallelImagePulls: -1\nserializeImagePulls: false", []string{kubeconfig}, "maxParallelImagePulls: it is -1, and must be positive"},
		{header + "maxParallelImagePulls: 0", []string{kubeconfig}, "maxParallelImagePulls: it is 0, and must be positive"},
		{header + "registerWithTaints: [{key: a, effect: Never}]", []string{kubeconfig}, `--register-with-taints: taint a: the effect "Never" is not one of`},
		{header + "registerWithTaints: [{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}]", []string{kubeconfig},
			"two with the key a and the effect NoSchedule"},
		{header + "registerWithTaints: [{key: a b, effect: NoSchedule}]", []string{kubeconfig}, "--register-with-taints: taint a b="},
		{header + "tracing: {samplingRatePerMillion: -1}", []string{kubeconfig}, "tracing: samplingRatePerMillion"},
		{header + "kubeReserved: {pods: \"3\"}", []string{kubeconfig}, "only cpu, memory, ephemeral-storage and pid"},
		{"apiVersion: v1\nkind: Pod", []string{kubeconfig}, "v1 Pod"},
		{"{", []string{kubeconfig}, "neither YAML nor JSON"},
		{"", nil, "nothing to run"},
		{"", []string{kubeconfig, "--root-dir=here"}, "--root-dir"},
		{"", []string{kubeconfig, "--node-ip=x"}, "--node-ip"},
		{"", []string{kubeconfig, "--node-ip=192.0.2.1,192.0.2.2"}, "--node-ip"},
		{"", []string{kubeconfig, "--node-network=wires"}, "--node-network"},
		{"", []string{"--manifest-url=http://x", "--node-network=routes"}, "--kubeconfig is required"},
		{"", []string{kubeconfig, "--port=70000"}, "--port"},
		{"", []string{kubeconfig, "--cgroup-driver=x"}, "--cgroup-driver"},
		{"", []string{kubeconfig, "--node-labels=k8s.io/a=b"}, "--node-labels"},
		{"", []string{kubeconfig, "--node-labels=a=b,node-role.kubernetes.io/control-plane="},
			"label node-role.kubernetes.io/control-plane: of the labels of kubernetes.io"},
		{"", []string{kubeconfig, "--register-with-taints=a=b:NoSchedule,a=c:NoSchedule"},
			`taint "a=c:NoSchedule": there is another with the key a and the effect NoSchedule`},
		{"", []string{kubeconfig, "--runtime-request-timeout=0"}, "--runtime-request-timeout"},
		{"", []string{kubeconfig, "--registry-qps=-1"}, "--registry-qps"},
		{header + "eventRecordQPS: -1", []string{kubeconfig}, "eventRecordQPS"},
		{"", []string{kubeconfig, "--register-with-taints=a=b:Never"}, "effect"},
		{"", []string{kubeconfig, "--register-with-taints=a b=c:NoSchedule"}, "taint a b=c: name part must consist of"},
		{"", []string{"--manifest-url=http://x", "--anonymous-auth"}, "everybody"},
		{"", []string{kubeconfig, "--eviction-hard=memory.available=1Gi"}, "key<value"},
		{"", []string{kubeconfig, "--eviction-hard=disk<1Gi"}, "evictionHard: disk: the signal is not known"},
		{"", []string{kubeconfig, "--tls-cert-file=/c"}, "go together"},
	} {
		_, err := load(t, c.file, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) && !strings.Contains(err.Error(), "unknown field") {
			t.Errorf("%q %q: error %v, want one about %q", c.file, c.args, err, c.want)
		}
	}
	if _, err := load(t, "", "--config=/does/not/exist", kubeconfig); err == nil {
		t.Error("a file that does not exist was read")
	}
}

// The node labels and taints that upstream's kubelet accepts. A list flag that
// is given several times is one list, which replaces the default.
func TestListsInPieces(t *testing.T) {
	c, err := load(t, "", "--kubeconfig=/k", "--eviction-hard=memory.available<1Gi", "--eviction-hard=nodefs.available<1%",
		"--eviction-soft=memory.available<2Gi", "--eviction-soft=nodefs.available<2%", "--eviction-soft-grace-period=memory.available=1m",
		"--eviction-soft-grace-period=nodefs.available=2m")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"memory.available": "1Gi", "nodefs.available": "1%"}
	if !maps.Equal(c.Eviction.Hard, want) || len(c.Eviction.Soft) != 2 || c.Eviction.SoftGrace["nodefs.available"] != "2m" ||
		c.Eviction.SoftGrace["memory.available"] != "1m" {
		t.Errorf("%+v", c.Eviction)
	}
	if c, err := load(t, "", "--kubeconfig=/k", "--eviction-hard="); err != nil || len(c.Eviction.Hard) > 0 {
		t.Errorf("an empty list is %v, %v", c.Eviction.Hard, err)
	}
}

func TestLabelsAndTaintsThatAreTaken(t *testing.T) {
	const kubeconfig = "--kubeconfig=/k"
	c, err := load(t, "", kubeconfig, "--node-labels=a,b=,example.com/c=d,node.kubernetes.io/e=f,sub.kubelet.kubernetes.io/g=h,kubernetes.io/hostname=i",
		"--register-with-taints=")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "", "b": "", "example.com/c": "d", "node.kubernetes.io/e": "f", "sub.kubelet.kubernetes.io/g": "h",
		"kubernetes.io/hostname": "i"}
	if !maps.Equal(c.NodeLabels, want) || len(c.RegisterWithTaints) != 0 {
		t.Errorf("%v, %v", c.NodeLabels, c.RegisterWithTaints)
	}
	if c, err = load(t, "", kubeconfig, "--register-with-taints=a=b:NoSchedule,a=c:NoExecute"); err != nil || len(c.RegisterWithTaints) != 2 {
		t.Errorf("%v, %v", c, err)
	}
}

// What one kubelet shows as its configuration is a valid configuration for
// another.
func TestDocumentIsAConfiguration(t *testing.T) {
	c := New()
	c.Sources.StaticPodPath, c.Sources.StaticPodURLHeader = "/etc/manifests", http.Header{"Authorization": {"Bearer secret"}}
	c.Eviction.Soft, c.Eviction.SoftGrace = map[string]string{"memory.available": "1Gi"}, map[string]string{"memory.available": "1m"}
	data, err := json.Marshal(c.Effective())
	if err != nil || strings.Contains(string(data), "secret") {
		t.Fatalf("%s, %v", data, err)
	}
	for _, fixed := range []string{`"enableDebuggingHandlers":true`, `"cpuCFSQuota":true`, `"enableControllerAttachDetach":true`,
		`"localStorageCapacityIsolation":true`,
		`"nodeStatusMaxImages":50`, `"oomScoreAdj":-999`, `"enforceNodeAllocatable":["pods"]`,
		`"imagePullCredentialsVerificationPolicy":"NeverVerifyPreloadedImages"`} {
		if !strings.Contains(string(data), fixed) {
			t.Errorf("%s is not in %s", fixed, data)
		}
	}
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	again := New()
	again.ConfigFile = file
	if err := again.Load(pflag.NewFlagSet("", pflag.ContinueOnError)); err != nil {
		t.Fatal(err)
	}
	again.ConfigFile, again.Sources.StaticPodURLHeader = "", c.Sources.StaticPodURLHeader
	shown, _ := json.Marshal(again.Effective())
	if string(shown) != string(data) {
		t.Errorf("read again: %s\nwant %s", shown, data)
	}
}

func TestShutdownPeriods(t *testing.T) {
	c, err := load(t, header+"shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n", "--pod-manifest-path=/m")
	if err != nil {
		t.Fatal(err)
	}
	if periods, err := c.Shutdown.Periods(); err != nil || len(periods) != 2 || periods[0].Grace != 20*time.Second {
		t.Errorf("periods %v, %v", periods, err)
	}
	if c, err = load(t, header+"shutdownGracePeriodByPodPriority: [{priority: 7, shutdownGracePeriodSeconds: 5}]\n", "--pod-manifest-path=/m"); err != nil ||
		len(c.Shutdown.GracePeriodByPodPriority) != 1 {
		t.Errorf("by priority: %v, %v", c, err)
	}
	if _, err = load(t, header+"shutdownGracePeriod: 1s\nshutdownGracePeriodCriticalPods: 10s\n", "--pod-manifest-path=/m"); err == nil ||
		!strings.Contains(err.Error(), "shutdownGracePeriodCriticalPods") {
		t.Errorf("error %v", err)
	}
}

func TestChangeDetection(t *testing.T) {
	for text, want := range map[string]objects.Strategy{
		"": "Watch", "configMapAndSecretChangeDetectionStrategy: Get\n": "Get", "configMapAndSecretChangeDetectionStrategy: Cache\n": "Cache",
	} {
		c, err := load(t, header+text, "--kubeconfig=/k")
		if err != nil || c.ChangeDetection != want || c.Effective().ConfigMapAndSecretChangeDetectionStrategy != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := load(t, header+"configMapAndSecretChangeDetectionStrategy: Poll\n", "--kubeconfig=/k")
	if err == nil || !strings.Contains(err.Error(), `configMapAndSecretChangeDetectionStrategy: unknown strategy "Poll"`) {
		t.Errorf("%v", err)
	}
}
