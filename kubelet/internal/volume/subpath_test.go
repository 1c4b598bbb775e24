package volume

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/volume/mount"
	"kctl/proto/core"
)

// subPathFixture is a pod with an empty volume, and a container that mounts one
// path of it.
type subPathFixture struct {
	m         *Manager
	pod       *core.Pod
	dir       string // the volume's directory
	container *core.Container
}

func newSubPathFixture(t *testing.T) *subPathFixture {
	t.Helper()
	needsMounts(t)
	f := &subPathFixture{m: newManager(t, newStore()), pod: podWith(emptyDirVolume("v", ""), configMapVolume("m", false))}
	mustMount(t, f.m, f.pod)
	f.dir = f.m.volumeDir(f.pod.UID, "emptyDir", "v")
	f.container = &core.Container{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}}
	return f
}

func (f *subPathFixture) mount(t *testing.T, subPath string) (string, error) {
	t.Helper()
	f.container.VolumeMounts[0].SubPath = subPath
	mounts, err := f.m.Mounts(t.Context(), f.pod, f.container, nil)
	if err != nil {
		return "", err
	}
	return mounts[0].HostPath, nil
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestSubPathIsMadeAndBound(t *testing.T) {
	f := newSubPathFixture(t)
	path, err := f.mount(t, "a/b")
	must(t, err)
	if want := filepath.Join(f.m.podDir(f.pod.UID), "volume-subpaths/v/c/0"); path != want {
		t.Errorf("mounted from %s, want %s", path, want)
	}
	must(t, os.WriteFile(filepath.Join(f.dir, "a/b/x"), []byte("1"), 0o644))
	expectFile(t, "1", path, "x")
	if info, err := os.Stat(filepath.Join(f.dir, "a")); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("a made directory has %v, %v; want the volume's mode", info.Mode(), err)
	}
	// A restarted container gets the same path, mounted once.
	again, err := f.mount(t, "a/b")
	must(t, err)
	if points, err := mount.Below(path); err != nil || again != path || len(points) != 1 {
		t.Errorf("again: %s, mounts %q, %v", again, points, err)
	}
	must(t, f.m.RemovePodDir(t.Context(), f.pod.UID))
}

func TestSubPathOfFilesAndSockets(t *testing.T) {
	f := newSubPathFixture(t)
	must(t, os.WriteFile(filepath.Join(f.dir, "file"), []byte("1"), 0o644))
	listener, err := net.Listen("unix", filepath.Join(f.dir, "s"))
	must(t, err)
	defer listener.Close()
	path, err := f.mount(t, "file")
	must(t, err)
	expectFile(t, "1", path)
	path, err = f.mount(t, "s")
	must(t, err)
	if info, err := os.Stat(path); err != nil || info.Mode().Type() != os.ModeSocket {
		t.Errorf("the socket is %v, %v", info, err)
	}
	if _, err := f.mount(t, "file/below"); err == nil {
		t.Error("a path below a file was mounted")
	}
}

// Each version of a config map has new files: a restarted container must get
// the present ones.
func TestSubPathFollowsVersions(t *testing.T) {
	f := newSubPathFixture(t)
	f.container.VolumeMounts[0].Name = "config"
	path, err := f.mount(t, "k")
	must(t, err)
	expectFile(t, "1", path)
	s := f.m.config.Objects.(*store)
	s.change(func() { s.configMaps["m"] = map[string]string{"k": "2"} })
	f.m.refresh(t.Context(), f.m.pods[f.pod.UID])
	expectFile(t, "1", path)
	path, err = f.mount(t, "k")
	must(t, err)
	expectFile(t, "2", path)
}

func TestSubPathNeverLeavesTheVolume(t *testing.T) {
	f := newSubPathFixture(t)
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600),
		os.Mkdir(filepath.Join(f.dir, "inside"), 0o755),
		os.Symlink("inside", filepath.Join(f.dir, "good")),
		os.Symlink(outside, filepath.Join(f.dir, "absolute")),
		os.Symlink("../../../../../../../../../../../.."+outside, filepath.Join(f.dir, "relative")),
		os.Symlink("/proc/self/root", filepath.Join(f.dir, "magic")),
		os.Symlink("absolute", filepath.Join(f.dir, "indirect")),
		os.Symlink(filepath.Join(outside, "none"), filepath.Join(f.dir, "dangling")),
		os.Symlink(filepath.Join(f.dir, "indirect"), filepath.Join(f.dir, "around")))
	if _, err := f.mount(t, "good"); err != nil {
		t.Errorf("a symlink inside the volume: %v", err)
	}
	for _, subPath := range []string{"absolute", "absolute/secret", "absolute/new", "relative/secret", "magic/etc", "indirect/secret", "dangling",
		"dangling/new", "around/new", "around/secret", "../x", "a/../../x", "/etc",
		".."} {
		if path, err := f.mount(t, subPath); err == nil {
			t.Errorf("%s was mounted from %s", subPath, path)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside of the volume: %v, %v", entries, err)
	}
}

// An absolute link may stay in its volume; on most hosts, /var/run of the volume / is one.
func TestSubPathFollowsAbsoluteLinksInside(t *testing.T) {
	f := newSubPathFixture(t)
	host := filepath.Join(t.TempDir(), "host")
	must(t, os.MkdirAll(filepath.Join(host, "run"), 0o755), os.Mkdir(filepath.Join(host, "var"), 0o755),
		os.Symlink(filepath.Join(host, "run"), filepath.Join(host, "var", "run")), os.Symlink(host, host+"-link"))
	link := filepath.Join(t.TempDir(), "inside-of-root")
	must(t, os.Symlink(host, link))
	for i, c := range []struct{ volume, subPath, is string }{
		{host, "var/run", "run"},
		{host, "var/run/made/below", "run/made/below"},
		{host + "-link", "var/run/made", "run/made"},
		{"/", filepath.Join(link[1:], "var/run/made/there"), "run/made/there"},
	} {
		path, err := bindSubPath(c.volume, c.subPath, filepath.Join(f.m.podDir(f.pod.UID), "volume-subpaths", strconv.Itoa(i)))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(host, c.is, "x"), []byte(c.is), 0o644))
		expectFile(t, c.is, path, "x")
	}
}

// Containers make the links: where they lead to on the host is not looked at, which could hang, and would tell.
func TestSubPathDoesNotLookOutside(t *testing.T) {
	f := newSubPathFixture(t)
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "file"), nil, 0o600), os.Symlink("loop", filepath.Join(outside, "loop")))
	var said []string
	for i, target := range []string{"none/below", "file/below", "loop/below", ""} {
		name := "link" + strconv.Itoa(i)
		must(t, os.Symlink(filepath.Join(outside, target), filepath.Join(f.dir, name)))
		_, err := f.mount(t, name)
		if !errors.Is(err, errOutside) {
			t.Errorf("a link to %q outside: %v", target, err)
			continue
		}
		said = append(said, strings.ReplaceAll(err.Error(), name, "link"))
	}
	if len(slices.Compact(slices.Clone(said))) != 1 {
		t.Errorf("the errors tell what is there: %q", said)
	}
}

// A link inside may go up, through others, and through names that begin with a dot.
func TestSubPathFollowsChainsOfLinks(t *testing.T) {
	f := newSubPathFixture(t)
	in := func(path string) string { return filepath.Join(f.dir, path) }
	must(t, os.MkdirAll(in(".hidden/deep"), 0o755), os.WriteFile(in(".hidden/x"), []byte("1"), 0o644),
		os.Symlink(in(".hidden/./deep"), in("first")), os.Symlink("first/..", in("second")), os.Symlink(in("second"), in("third")),
		os.Symlink(in("one"), in("other")), os.Symlink(in("other"), in("one")))
	path, err := f.mount(t, "third")
	must(t, err)
	expectFile(t, "1", path, "x")
	if _, err := f.mount(t, "one"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("links in a circle: %v", err)
	}
}

// Opening a pipe waits for somebody at its other end, who never comes.
func TestSubPathOfAPipe(t *testing.T) {
	needsMounts(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	for _, open := range []func() error{
		func() error { _, err := bindSubPath(pipe, "a", filepath.Join(t.TempDir(), "target")); return err },
		func() error { return makeSubPath(pipe, "a") },
	} {
		if err := open(); !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("a subPath of a pipe: %v", err)
		}
	}
}

// A container that keeps swapping a directory for a symlink never gets anything
// outside its volume.
func TestSubPathRace(t *testing.T) {
	f := newSubPathFixture(t)
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "mark"), nil, 0o644),
		os.Mkdir(filepath.Join(f.dir, "dir"), 0o755),
		os.Symlink(outside, filepath.Join(f.dir, "link")))
	stop := make(chan struct{})
	var attacker sync.WaitGroup
	attacker.Go(func() {
		a, b, c := filepath.Join(f.dir, "dir"), filepath.Join(f.dir, "link"), filepath.Join(f.dir, "spare")
		for {
			select {
			case <-stop:
				return
			default:
				// The two swap names; in between, either may be missing.
				_ = os.Rename(a, c)
				_ = os.Rename(b, a)
				_ = os.Rename(c, b)
			}
		}
	})
	mounted := 0
	for range 300 {
		path, err := f.mount(t, "dir")
		if err != nil {
			continue
		}
		mounted++
		if _, err := os.Stat(filepath.Join(path, "mark")); err == nil {
			t.Error("the container got out of its volume")
			break
		}
	}
	close(stop)
	attacker.Wait()
	if mounted == 0 {
		t.Error("no attempt succeeded, so that nothing was tried")
	}
}

func TestSubPathExpr(t *testing.T) {
	f := newSubPathFixture(t)
	mounts := func(expr string) (string, error) {
		f.container.VolumeMounts[0].SubPathExpr = expr
		got, err := f.m.Mounts(t.Context(), f.pod, f.container, map[string]string{"POD": "p", "UP": "..", "ROOT": "/etc", "LONG": strings.Repeat("l", 4096)})
		if err != nil {
			return "", err
		}
		return got[0].HostPath, nil
	}
	path, err := mounts("logs/$(POD)-$$(POD)-$x$")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(f.dir, "logs/p-$(POD)-$x$/f"), []byte("1"), 0o644))
	expectFile(t, "1", path, "f")
	for expr, want := range map[string]string{
		"$(NONE)":     `missing value for "NONE"`,
		"$(UP)":       "must not contain '..'",
		"a/$(UP)/$UP": "must not contain '..'",
		"$(ROOT)":     "must not be an absolute path",
		"$(LONG)/x":   "more than 4095 bytes",
	} {
		if _, err := mounts(expr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", expr, err, want)
		}
	}
}
