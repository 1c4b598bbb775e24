package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/cri/critest"
	"kctl/kubelet/internal/volume/mount"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/rest"
)

// bed is a kubelet on a containerd of its own, with an API in memory.
type bed struct {
	t          testing.TB
	containerd *critest.Containerd
	api        *testAPI
	client     *rest.Client
	config     *config.Config
	kubelet    *Kubelet // the one that runs, or ran last
	stop       func()
	again      func() // starts one of the same kind, which takes over
	running    bool
}

// newBed starts a kubelet; configure may change its configuration.
func newBed(t testing.TB, configure ...func(*config.Config)) *bed {
	b := &bed{t: t, containerd: critest.Start(t), api: newTestAPI(t)}
	dir := b.containerd.Dir // its mounts are removed even if the test is killed
	b.config = config.New()
	b.config.Kubeconfig = b.api.kubeconfig()
	b.config.NodeName, b.config.NodeIP = "node-1", "127.0.0.1"
	b.config.RootDir, b.config.PodLogsDir, b.config.CertDir = filepath.Join(dir, "kubelet"), filepath.Join(dir, "logs"), filepath.Join(dir, "pki")
	b.config.ContainerRuntimeEndpoint = b.containerd.Endpoint
	b.config.Serving.Address, b.config.Serving.Port, b.config.Serving.HealthzPort = "127.0.0.1", 0, 0
	b.config.MakeIPTablesUtilChains = false // the machine's rules are not the tests'
	b.config.Cgroups.Root = "/kctl-test-" + filepath.Base(b.containerd.Dir)
	b.config.Eviction.Hard, b.config.Images.HighThresholdPercent = nil, 100 // the tests must not depend on how full the machine's disk is
	b.config.Sources.StaticPodPath = filepath.Join(dir, "manifests")
	if err := os.Mkdir(b.config.Sources.StaticPodPath, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg, err := rest.LoadKubeconfig(b.config.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if b.client, err = rest.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.removeGroups)
	t.Cleanup(func() {
		if err := mount.UnmountBelow(b.config.RootDir); err != nil {
			t.Error(err)
		}
	})
	for _, change := range configure {
		change(b.config)
	}
	b.start()
	t.Cleanup(b.finish)
	return b
}

// start runs a kubelet until b.stop; prepare may change it before it runs.
func (b *bed) start(prepare ...func(*Kubelet)) {
	b.t.Helper()
	logger := zaptest.NewLogger(b.t, zaptest.Level(zap.InfoLevel))
	ctx, cancel := context.WithCancel(context.Background())
	k, err := New(ctx, b.config, clock.RealClock{}, logger, daemon.NewRegistry())
	if err != nil {
		cancel()
		b.t.Fatal(err)
	}
	for _, change := range prepare {
		change(k)
	}
	b.again = func() { b.start() }
	b.run(k, ctx, cancel)
}

// run runs k until b.stop.
func (b *bed) run(k *Kubelet, ctx context.Context, cancel func()) {
	b.kubelet, b.running = k, true
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	b.stop = func() {
		if !b.running {
			return
		}
		b.running = false
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("kubelet ended with %v", err)
		}
	}
}

// removeGroups removes the control groups, which outlive a kubelet.
func (b *bed) removeGroups() {
	dirs, _ := filepath.Glob("/sys/fs/cgroup/*" + b.config.Cgroups.Root)
	for _, root := range append(dirs, "/sys/fs/cgroup"+b.config.Cgroups.Root) {
		var groups []string
		_ = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				groups = append(groups, path)
			}
			return nil
		})
		for _, group := range slices.Backward(groups) {
			_ = os.Remove(group)
		}
	}
}

func (b *bed) create(pod *core.Pod) {
	b.t.Helper()
	if err := b.client.Resource(core.Pods, "default").Create(b.t.Context(), pod, nil); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) delete(name string) {
	b.t.Helper()
	if err := b.client.Resource(core.Pods, "default").Delete(b.t.Context(), name, nil, nil); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) phase(name string) corev1.PodPhase {
	if pod := b.api.pod(name); pod != nil {
		return pod.Status.Phase
	}
	return "gone"
}

func (b *bed) waitPhase(name string, phase corev1.PodPhase) *core.Pod {
	b.t.Helper()
	b.api.wait(name+" "+string(phase), func() bool { return b.phase(name) == phase })
	return b.api.pod(name)
}

func shellPod(name, script string) *core.Pod {
	grace := int64(2)
	return &core.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: core.PodSpec{
			NodeName:                      "node-1",
			RestartPolicy:                 corev1.RestartPolicyAlways,
			DNSPolicy:                     corev1.DNSDefault,
			TerminationGracePeriodSeconds: &grace,
			Containers: []core.Container{{
				Name:                     "main",
				Image:                    critest.BusyboxImage,
				ImagePullPolicy:          corev1.PullIfNotPresent,
				Command:                  []string{"/bin/sh", "-c", "trap 'exit 0' TERM; " + script},
				TerminationMessagePath:   "/dev/termination-log",
				TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			}},
		},
	}
}

const forever = "while :; do sleep 1000 & wait; done"

// eventually polls for what no watch reports.
func (b *bed) eventually(what string, condition func() bool) {
	b.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			b.t.Fatalf("waited in vain for %s", what)
		}
	}
}
