package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/volume/atomic"
	"kctl/kubelet/internal/volume/mount"
	"kctl/proto/core"
)

func TestMountMakesEveryKind(t *testing.T) {
	needsMounts(t)
	host := t.TempDir()
	s := newStore()
	m := newManager(t, s)
	pod := podWith(configMapVolume("m", false), secretVolume(), downwardVolume(), tokenVolume(),
		emptyDirVolume("scratch", ""), emptyDirVolume("ram", corev1.StorageMediumMemory),
		corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host}}})
	mustMount(t, m, pod)
	volumes := filepath.Join(m.config.RootDir, "pods", "uid-1", "volumes")
	expectFile(t, "1", volumes, "kubernetes.io~configmap/config/k")
	expectFile(t, "\x00\x01", volumes, "kubernetes.io~configmap/config/binary")
	expectFile(t, "hunter2", volumes, "kubernetes.io~secret/secret/password")
	expectFile(t, `app="web"`, volumes, "kubernetes.io~downward-api/info/labels")
	expectFile(t, "4", volumes, "kubernetes.io~downward-api/info/cpu")
	expectFile(t, "token-1/p/vault", volumes, "kubernetes.io~projected/api/token")
	expectFile(t, "1", volumes, "kubernetes.io~projected/api/ca.crt")
	expectFile(t, "ns", volumes, "kubernetes.io~projected/api/namespace")
	for path, memory := range map[string]bool{
		"kubernetes.io~secret/secret": true, "kubernetes.io~downward-api/info": true, "kubernetes.io~projected/api": true, "kubernetes.io~empty-dir/ram": true,
		"kubernetes.io~empty-dir/scratch": false, "kubernetes.io~configmap/config": false,
	} {
		if is, err := mount.IsTmpfs(filepath.Join(volumes, path)); err != nil || is != memory {
			t.Errorf("%s in memory: %v, %v; want %v", path, is, err, memory)
		}
	}
	if info, err := os.Stat(filepath.Join(volumes, "kubernetes.io~empty-dir/scratch")); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("emptyDir: %v, %v", info, err)
	}
	asked := s.asked
	mustMount(t, m, pod)
	if s.asked != asked {
		t.Error("mounting again asked the API")
	}
	c := &core.Container{Name: "c", VolumeMounts: []corev1.VolumeMount{
		{Name: "config", MountPath: "/config"}, {Name: "scratch", MountPath: "/scratch"}, {Name: "host", MountPath: "/host", ReadOnly: true},
	}}
	mounts, err := m.Mounts(t.Context(), pod, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		path     string
		readOnly bool
	}{{filepath.Join(volumes, "kubernetes.io~configmap/config"), true}, {filepath.Join(volumes, "kubernetes.io~empty-dir/scratch"), false}, {host, true}} {
		if mounts[i].SELinuxRelabel != (want.path != host) || mounts[i].HostPath != want.path || mounts[i].ReadOnly != want.readOnly ||
			mounts[i].ContainerPath != c.VolumeMounts[i].MountPath {
			t.Errorf("mount %d is %+v, want %+v", i, mounts[i], want)
		}
	}
	if err := m.RemovePodDir(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(m.config.RootDir, "pods", "uid-1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pod's directory: %v", err)
	}
	if len(s.registered) != 0 || len(m.pods) != 0 {
		t.Error("something of the pod is remembered")
	}
	if _, err := os.Stat(host); err != nil {
		t.Errorf("the host's directory: %v", err)
	}
}

func TestMountErrorsNameTheVolume(t *testing.T) {
	cases := []struct {
		volume corev1.Volume
		want   string
	}{
		{configMapVolume("none", false), `MountVolume.SetUp failed for volume "config" : configmaps "none" not found`},
		{configMapVolume("m", false, corev1.KeyToPath{Key: "nokey", Path: "p"}), "configmap references non-existent config key: nokey"},
		{configMapVolume("m", false, corev1.KeyToPath{Key: "k", Path: "../p"}), "must not begin with '..'"},
		{corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}}, `volume "v": volumes of the kind nfs are not supported`},
		{corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "neither"}}},
		}}}}, `MountVolume.SetUp failed for volume "v" : [configmaps "none" not found, configmaps "neither" not found]`},
		{emptyDirVolume("v", "HugePages-2Mi"), "there is no resource request for huge pages"},
		{emptyDirVolume("v", "HugePages-two"), "medium HugePages-two is not supported"},
		{corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{}}}}},
			"unknown is not supported"},
	}
	for _, c := range cases {
		m := newManager(t, newStore())
		err := m.Mount(t.Context(), podWith(c.volume))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	m := newManager(t, newStore())
	mustMount(t, m, podWith(configMapVolume("none", true)))
	mustMount(t, newManager(t, newStore()), podWith(configMapVolume("m", true, corev1.KeyToPath{Key: "nokey", Path: "p"})))
}

func TestHugePages(t *testing.T) {
	needsMounts(t)
	if _, err := os.Stat("/sys/kernel/mm/hugepages/hugepages-2048kB"); err != nil {
		t.Skipf("the machine has no huge pages of this size: %v", err)
	}
	m := newManager(t, newStore())
	volumes := []corev1.Volume{emptyDirVolume("any", "HugePages"), emptyDirVolume("sized", "HugePages-2Mi")}
	pod := podWith(volumes...)
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"hugepages-2Mi": resource.MustParse("2Mi")}
	mustMount(t, m, pod)
	for i := range volumes {
		var file syscall.Statfs_t
		dir := m.Dir(pod.UID, &volumes[i])
		if err := syscall.Statfs(dir, &file); err != nil || file.Type != 0x958458f6 || file.Bsize != 2<<20 {
			t.Errorf("%s: %+v, %v; want huge pages of 2 MiB", dir, file, err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o777 {
			t.Errorf("%v, %v", info, err)
		}
	}
	if err := m.Unmount(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
	if points, err := mount.Below(m.config.RootDir); err != nil || len(points) > 0 {
		t.Errorf("left: %q, %v", points, err)
	}
}

func TestCheckRefusesWaysOfMounting(t *testing.T) {
	pod := podWith()
	pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{}}
	if err := Check(pod); err == nil || !strings.Contains(err.Error(), "volumeDevices") {
		t.Errorf("volumeDevices: %v", err)
	}
	pod = podWith()
	pod.Spec.InitContainers = []core.Container{{Name: "i", VolumeMounts: []corev1.VolumeMount{{Name: "v", BindMountOptions: []string{"noexec"}}}}}
	if err := Check(pod); err == nil || !strings.Contains(err.Error(), "bindMountOptions") {
		t.Errorf("bindMountOptions: %v", err)
	}
}

func TestMountIsRetriedUntilComplete(t *testing.T) {
	s := newStore()
	m := newManager(t, s)
	pod := podWith(configMapVolume("later", false), emptyDirVolume("scratch", ""))
	if err := m.Mount(t.Context(), pod); err == nil {
		t.Fatal("a missing config map was no error")
	}
	s.change(func() { s.configMaps["later"] = map[string]string{"k": "v"} })
	mustMount(t, m, pod)
	expectFile(t, "v", m.volumeDir(pod.UID, "configMap", "config"), "k")
}

// A downwardAPI volume that an older kubelet made on the disk stays there, where the pod's containers see it.
func TestDownwardAPIStaysOnTheDisk(t *testing.T) {
	needsMounts(t)
	m := newManager(t, newStore())
	pod := podWith(downwardVolume())
	info := m.volumeDir(pod.UID, "downwardAPI", "info")
	if err := os.MkdirAll(info, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := atomic.Write(info, atomic.Payload{"labels": {Data: []byte("old"), Mode: 0o644}}, atomic.Options{Now: m.config.Clock.Now()}); err != nil {
		t.Fatal(err)
	}
	mustMount(t, m, pod)
	expectFile(t, `app="web"`, info, "labels")
	if is, err := mount.IsTmpfs(info); is || err != nil {
		t.Errorf("in memory: %t, %v", is, err)
	}
}

// Run updates the content of running pods: from API objects within a minute,
// from the pod itself, and whatever it refers to when it changes, right after its
// sync.
func TestRunRefreshesContent(t *testing.T) {
	needsMounts(t)
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		m := managerIn(t, root, s)
		logs, lines := observer.New(zap.InfoLevel)
		m.config.Logger = zap.New(logs)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = m.Run(ctx) })
		pod := podWith(configMapVolume("m", false), downwardVolume())
		mustMount(t, m, pod)
		config, info := m.volumeDir(pod.UID, "configMap", "config"), m.volumeDir(pod.UID, "downwardAPI", "info")

		s.change(func() { s.configMaps["m"] = map[string]string{"k": "2"} })
		time.Sleep(time.Minute)
		synctest.Wait()
		expectFile(t, "2", config, "k")
		if _, err := os.Lstat(filepath.Join(config, "other")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a key that is gone: %v", err)
		}

		s.change(func() {
			s.kept, s.configMaps["m"] = map[string]map[string]string{"m": {"k": "2"}}, map[string]string{"k": "2b"}
		})
		changed := pod.DeepCopy()
		changed.Labels["app"] = "db"
		mustMount(t, m, changed)
		synctest.Wait() // no time passes
		expectFile(t, `app="db"`, info, "labels")
		expectFile(t, "2b", config, "k")

		// The API goes away, and comes back with a change.
		s.change(func() { s.away = true; s.configMaps["m"] = map[string]string{"k": "3"} })
		time.Sleep(time.Hour)
		expectFile(t, "2b", config, "k")
		mustMount(t, m, changed)
		s.change(func() { s.away = false })
		time.Sleep(refreshRetry + refreshTick)
		synctest.Wait()
		expectFile(t, "3", config, "k")
		if stale, again := lines.FilterMessageSnippet("keep their old content").Len(), lines.FilterMessageSnippet("again").Len(); stale != 1 || again != 1 {
			t.Errorf("%d lines say that content is old, and %d that it is new again", stale, again)
		}

		if err := m.Unmount(t.Context(), pod.UID); err != nil {
			t.Error(err)
		}
		s.change(func() { s.asked = 0 })
		time.Sleep(time.Hour)
		synctest.Wait()
		if s.asked != 0 {
			t.Error("the content of a pod that is gone is asked for")
		}
		cancel()
		running.Wait()
	})
}

// A kubelet that starts while the API is away must be able to start containers
// of pods whose volumes an earlier one mounted.
func TestMountAfterRestartServesWhatIsThere(t *testing.T) {
	needsMounts(t)
	s := newStore()
	first := newManager(t, s)
	pod := podWith(configMapVolume("m", false), tokenVolume(), emptyDirVolume("ram", corev1.StorageMediumMemory))
	mustMount(t, first, pod)
	ram := first.volumeDir(pod.UID, "emptyDir", "ram")
	if err := os.WriteFile(filepath.Join(ram, "kept"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.change(func() { s.away = true })
	second := managerIn(t, first.config.RootDir, s)
	mustMount(t, second, pod)
	expectFile(t, "x", ram, "kept")
	expectFile(t, "token-1/p/vault", second.volumeDir(pod.UID, "projected", "api"), "token")

	// A missing object is an answer: the old content is not used instead.
	s.change(func() { s.away = false; delete(s.configMaps, "m") })
	if err := managerIn(t, first.config.RootDir, s).Mount(t.Context(), pod); !apierrors.IsNotFound(err) {
		t.Errorf("with the config map gone: %v", err)
	}
	pods, err := second.Pods()
	if err != nil || len(pods) != 1 || pods[0] != pod.UID {
		t.Errorf("Pods = %v, %v", pods, err)
	}
	// A third kubelet does not know the pod and removes its volumes.
	third := managerIn(t, first.config.RootDir, s)
	if err := third.RemovePodDir(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
	if pods, err := third.Pods(); err != nil || len(pods) != 0 {
		t.Errorf("Pods = %v, %v", pods, err)
	}
	for _, uid := range []types.UID{"", ".", "..", "../x", "a/b"} {
		if err := third.RemovePodDir(t.Context(), uid); err == nil {
			t.Errorf("RemovePodDir(%q) did something", uid)
		}
	}
}

func TestFSGroupOwnsVolumes(t *testing.T) {
	needsMounts(t)
	m := newManager(t, newStore())
	group := int64(4321)
	pod := podWith(configMapVolume("settings", true), secretVolume(), tokenVolume(), emptyDirVolume("scratch", ""),
		emptyDirVolume("ram", corev1.StorageMediumMemory))
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &group}
	mustMount(t, m, pod)
	below := &core.Container{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "ram", MountPath: "/ram", SubPath: "below"}}}
	if _, err := m.Mounts(t.Context(), pod, below, nil); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{
		filepath.Join(m.volumeDir(pod.UID, "secret", "secret"), "password"): 0o440,
		filepath.Join(m.volumeDir(pod.UID, "projected", "api"), "token"):    0o640,
		m.volumeDir(pod.UID, "secret", "secret"):                            os.ModeDir | os.ModeSetgid | os.ModeSticky | 0o777,
		m.volumeDir(pod.UID, "projected", "api"):                            os.ModeDir | os.ModeSetgid | os.ModeSticky | 0o777,
		m.volumeDir(pod.UID, "configMap", "config"):                         os.ModeDir | os.ModeSetgid | 0o777,
		m.volumeDir(pod.UID, "emptyDir", "scratch"):                         os.ModeDir | os.ModeSetgid | 0o777,
		m.volumeDir(pod.UID, "emptyDir", "ram"):                             os.ModeDir | os.ModeSetgid | os.ModeSticky | 0o777,
		filepath.Join(m.volumeDir(pod.UID, "emptyDir", "ram"), "below"):     os.ModeDir | os.ModeSetgid | os.ModeSticky | 0o777,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if stat := info.Sys().(*syscall.Stat_t); info.Mode() != mode || int64(stat.Gid) != group {
			t.Errorf("%s: %v of group %d, want %v of %d", path, info.Mode(), stat.Gid, mode, group)
		}
	}
}

func TestTokenBelongsToTheOneUser(t *testing.T) {
	needsMounts(t)
	m := newManager(t, newStore())
	user := int64(1000)
	pod := podWith(tokenVolume())
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: &user}
	mustMount(t, m, pod)
	info, err := os.Stat(filepath.Join(m.volumeDir(pod.UID, "projected", "api"), "token"))
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); info.Mode() != 0o600 || int64(stat.Uid) != user {
		t.Errorf("token: %v of user %d, want 0600 of %d", info.Mode(), stat.Uid, user)
	}
}
