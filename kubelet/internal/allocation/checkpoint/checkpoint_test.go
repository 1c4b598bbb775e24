package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/allocation"
	"kctl/proto/core"
)

// upstreams is what kubelet 1.37.2 wrote.
const upstreams = `{"data":"{\"entries\":{\"24961a3b-cde8-49ab-bfbb-c64e9eaaeba2\":{\"ContainerResources\":{\"c\":{\"limits\":{\"cpu\":\"100m\",\"memory\":\"64Mi\"},\"requests\":{\"cpu\":\"50m\",\"memory\":\"32Mi\"}}},\"PodLevelResources\":null,\"EmptyDirVolumeLimits\":null},\"8123e29c-08ff-4ac4-a168-a1397e10fb06\":{\"ContainerResources\":{\"c\":{\"limits\":{\"cpu\":\"100m\",\"memory\":\"64Mi\"},\"requests\":{\"cpu\":\"50m\",\"memory\":\"32Mi\"}}},\"PodLevelResources\":null,\"EmptyDirVolumeLimits\":null}}}","checksum":3378557073}`

func write(t *testing.T, dir, granted, actual string) {
	t.Helper()
	for name, text := range map[string]string{grantedFile: granted, actualFile: actual} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func files(t *testing.T, dir string) (granted, actual string) {
	t.Helper()
	var all [2]string
	for i, name := range []string{grantedFile, actualFile} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all[i] = string(text)
	}
	return all[0], all[1]
}

func newKeeper(dir string) *Keeper {
	return &Keeper{Dir: dir, Manager: allocation.New(), Clock: clock.RealClock{}, Logger: zap.NewNop()}
}

func pod(uid types.UID, cpu string) *core.Pod {
	p := &core.Pod{}
	p.UID = uid
	p.Spec.Containers = []core.Container{{Name: "c",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	return p
}

// What upstream's kubelet wrote is read, kept for pods that were not seen yet, and written as it was.
func TestUpstreamsFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[kubelet") // which is no pattern
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, upstreams, upstreams)
	k := newKeeper(dir)
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	p := pod("24961a3b-cde8-49ab-bfbb-c64e9eaaeba2", "50m")
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("32Mi")
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	if k.Manager.Allocated(p) != p || k.Manager.AsActual(p) != p {
		t.Errorf("it was granted %+v, and has %+v", k.Manager.Allocated(p).Spec, k.Manager.AsActual(p).Spec)
	}
	write(t, dir, "", "")
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	if granted, actual := files(t, dir); granted != upstreams || actual != upstreams {
		t.Errorf("granted %s\nactual %s\nwant %s", granted, actual, upstreams)
	}
	k.Manager.Retain(func(types.UID) bool { return false })
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	if granted, actual := files(t, dir); granted != actual || strings.Contains(granted, "8123e29c") || !strings.Contains(granted, `"data":"{}"`) {
		t.Errorf("with no pods left: %s, %s", granted, actual)
	}
}

// A kubelet that starts in the middle of a resize knows how far it was, whatever the API says.
func TestInTheMiddleOfAResize(t *testing.T) {
	dir := t.TempDir()
	before := newKeeper(dir)
	always := func(*core.Pod, func(*core.Pod) *core.Pod) *core.PodCondition { return nil }
	before.Manager.Allocate(pod("p", "1"), always)
	before.Manager.Allocate(pod("p", "2"), always)
	if err := before.Save(); err != nil {
		t.Fatal(err)
	}
	after := newKeeper(dir)
	if err := after.Load(); err != nil {
		t.Fatal(err)
	}
	seen := pod("p", "3") // which is not granted
	seen.Status.ContainerStatuses = []core.ContainerStatus{{Name: "c", Resources: &seen.Spec.Containers[0].Resources}}
	cpu := func(p *core.Pod) string { return p.Spec.Containers[0].Resources.Requests.Cpu().String() }
	if granted, actual := cpu(after.Manager.Allocated(seen)), cpu(after.Manager.AsActual(seen)); granted != "2" || actual != "1" {
		t.Errorf("it was granted %s, and has %s", granted, actual)
	}
}

// Files that are broken are not believed, and are written again.
func TestBrokenFiles(t *testing.T) {
	for _, broken := range []string{"", "{", upstreams[:100], strings.Replace(upstreams, "3378557073", "1", 1), `{"data":"[]","checksum":2142361104}`,
		`{"data":"{","checksum":-1}`} {
		dir := t.TempDir()
		write(t, dir, broken, upstreams)
		k := newKeeper(dir)
		if err := k.Load(); err == nil || !strings.Contains(err.Error(), grantedFile) {
			t.Errorf("%q: error %v", broken, err)
		}
		if records := k.Manager.Records(); len(records) != 2 {
			t.Errorf("%q: the other file is read as %v", broken, records)
		}
		if err := k.Save(); err != nil {
			t.Error(err)
		}
		if granted, actual := files(t, dir); granted == broken || actual != upstreams {
			t.Errorf("%q: %s, %s", broken, granted, actual)
		}
	}
}

// What changes is written without being asked for, and again after a failure.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "later")
		k := newKeeper(dir)
		done := make(chan error)
		go func() { done <- k.Run(t.Context()) }()
		k.Manager.Admit(pod("p", "1"))
		synctest.Wait()
		<-k.Clock.After(together + retry/2)
		if err := os.Mkdir(dir, 0o700); err != nil { // until then it fails
			t.Fatal(err)
		}
		<-k.Clock.After(retry)
		first, _ := files(t, dir)
		k.Manager.Forget("p")
		<-k.Clock.After(2 * together)
		if second, _ := files(t, dir); !strings.Contains(first, `\"cpu\":\"1\"`) || strings.Contains(second, "cpu") {
			t.Errorf("%s, then %s", first, second)
		}
		go func() { <-done }() // once the test's context ends
	})
}

// What can't be written any more leaves nothing old behind, and is written as soon as there is
// room.
func TestAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to mount a small disk")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	k := newKeeper(dir)
	k.Manager.Admit(pod("p", "1"))
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	first, _ := files(t, dir)
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, make([]byte, 64<<10), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	k.Manager.Admit(pod("q", "1"))
	if err := k.Save(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v", err)
	}
	after := newKeeper(dir)
	if err := after.Load(); err != nil || after.Manager.Records()["p"].Granted != nil {
		t.Errorf("a kubelet that starts knows %v, %v", after.Manager.Records(), err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	k.Manager.Forget("q") // so that the same is to be written as at first
	if err := k.Save(); err != nil {
		t.Error(err)
	}
	if again, _ := files(t, dir); again != first {
		t.Errorf("%s, at first %s", again, first)
	}
}

// What a kubelet left half written when it was killed is removed by the next one, and what one that
// still runs is writing is not.
func TestHalfWrittenFiles(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(dir)
	left, being := filepath.Join(dir, "."+grantedFile+".1"), filepath.Join(dir, "."+actualFile+".2")
	for path, age := range map[string]time.Duration{left: 2 * writing, being: 0} {
		at := k.Clock.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was left is still there: %v", err)
	}
	if _, err := os.Stat(being); err != nil {
		t.Errorf("what is being written is gone: %v", err)
	}
}
