package cluster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// clusterWithoutPrograms is what an up has made that started none.
func clusterWithoutPrograms(t *testing.T) Layout {
	t.Helper()
	l := layout(t)
	makeWithoutPrograms(t, l)
	return l
}

func makeWithoutPrograms(t *testing.T, l Layout) {
	t.Helper()
	unlock, err := l.prepare()
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	if err := (&settings{}).save(l); err != nil {
		t.Fatal(err)
	}
}

// What a down has not taken away because the user stopped it, or because it could not, the
// next one finds by what the directory holds.
func TestDownThatIsCutShort(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	l := clusterWithoutPrograms(t)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	err := Down(stopped, DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr})
	if partial, ok := errors.AsType[*PartialError](err); !ok || partial.Dir != l.Dir || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(l.Settings()); err != nil {
		t.Error(err)
	}
}

// As long as a file can't be removed, there is a cluster that another down can go on with.
func TestDownThatCanNotRemoveAFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	l := clusterWithoutPrograms(t)
	f, err := os.Create(l.path("log", "kept"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flags := func(set int) error { return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, set) }
	const immutable = 0x10 // FS_IMMUTABLE_FL
	if err := flags(immutable); err != nil {
		t.Skipf("skipped: no file can be made immutable here: %v", err)
	}
	t.Cleanup(func() { _ = flags(0) })
	err = Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr})
	if _, ok := errors.AsType[*PartialError](err); !ok {
		t.Errorf("got %v", err)
	}
	if err := flags(0); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr}); err != nil {
		t.Error(err)
	}
}

// What a down keeps, a later one takes away.
func TestDownOfWhatWasKept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	l := clusterWithoutPrograms(t)
	for _, keep := range []bool{true, true, false} {
		if err := Down(t.Context(), DownOptions{Dir: l.Dir, KeepData: keep}, &Lines{Out: os.Stderr}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(l.Settings()); (err == nil) != keep {
			t.Errorf("kept: %t; the settings: %v", keep, err)
		}
	}
}

// Where the runtime can't start any more, there is a way out.
func TestDownWithABrokenRuntime(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	l, broken := clusterWithoutPrograms(t), t.TempDir()
	t.Setenv("PATH", broken+":"+os.Getenv("PATH"))
	for file, content := range map[string]string{filepath.Join(broken, "containerd"): "#!/bin/sh\nexit 1\n", l.path("containerd.toml"): ""} {
		if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr})
	if err == nil || !strings.Contains(err.Error(), "remove "+l.path("containerd.toml")) {
		t.Fatalf("got %v", err)
	}
	if err := os.Remove(l.path("containerd.toml")); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(l.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is there: %v", err)
	}
}

// A kctl that is killed while it writes a file leaves a draft of it, which keeps neither the
// next up from the directory nor down from taking all of it away.
func TestDraftsOfAKilledKctl(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	draft := func(l Layout, of string) {
		t.Helper()
		if err := os.WriteFile(l.path("."+of+".12345"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := layout(t)
	draft(l, settingsFile)
	unlock, err := l.prepare()
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	if err := (&settings{}).save(l); err != nil {
		t.Fatal(err)
	}
	draft(l, "admin.kubeconfig")
	others := []string{".run.12345", ".cluster.json.swp"}
	for _, file := range others {
		if err := os.WriteFile(l.path(file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr}); err != nil {
		t.Error(err)
	}
	for _, file := range others { // which are no drafts of kctl's
		if err := os.Remove(l.path(file)); err != nil {
			t.Error(err)
		}
	}
	if err := (&settings{}).save(l); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr}); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(l.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is there: %v, %v", entries, err)
	}
}

// The certificates, by which reset knows a kubelet's directory, stay until all else is gone.
func TestAKubeletsDirectoryIsKnownToTheEnd(t *testing.T) {
	dir := t.TempDir()
	stuck := filepath.Join(dir, "pods", "stuck")
	for _, file := range []string{stuck, filepath.Join(dir, "pki", "kubelet.crt")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(stuck)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const immutable = 0x10 // FS_IMMUTABLE_FL
	if err := unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, immutable); err != nil {
		t.Skipf("skipped: no file can be kept from being removed here: %v", err)
	}
	err = RemoveKubeletDir(dir)
	if err := unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, 0); err != nil {
		t.Fatal(err)
	}
	if _, there := os.Stat(filepath.Join(dir, "pki", "kubelet.crt")); err == nil || there != nil {
		t.Errorf("stuck: %v; the certificate: %v", err, there)
	}
	if err := RemoveKubeletDir(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is there: %v", err)
	}
}

func TestPrepareLeavesOthersDirectoriesAlone(t *testing.T) {
	l := layout(t)
	if err := os.WriteFile(filepath.Join(l.Dir, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.prepare(); err == nil {
		t.Error("a directory with somebody's file in it is taken")
	}
	if err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr}); err == nil {
		t.Error("down on a directory that is no cluster's succeeds")
	}
	if _, err := os.Stat(filepath.Join(l.Dir, "precious")); err != nil {
		t.Error(err)
	}
}

func TestLock(t *testing.T) {
	l := layout(t)
	unlock, err := l.prepare()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.lock(); err == nil {
		t.Error("two hold the lock")
	}
	unlock()
	again, err := l.lock()
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// What an audit log of the user's in the directory is to the next up, down says beforehand.
func TestDownNamesWhatItLeaves(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	for name, leads := range map[string]func(dir string) error{
		"a directory": func(string) error { return nil },
		"a mount": func(dir string) error {
			t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
			return unix.Mount(dir, dir, "", unix.MS_BIND, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := layout(t)
			if err := errors.Join(os.MkdirAll(l.Dir, 0o700), leads(l.Dir)); err != nil {
				t.Fatal(err)
			}
			makeWithoutPrograms(t, l)
			if err := os.WriteFile(l.path("audit.log"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			var told strings.Builder
			if err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: &told}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(told.String(), "such as audit.log") || strings.Contains(told.String(), "emptied") {
				t.Errorf("down says:\n%s", told.String())
			}
			if _, err := l.prepare(); err == nil || !strings.Contains(err.Error(), "such as audit.log") {
				t.Errorf("the next up: %v", err)
			}
		})
	}
}
