package leftover

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestMain is also the process that holds a directory and is killed.
func TestMain(m *testing.M) {
	if parent := os.Getenv("LEFTOVER_HOLDER"); parent != "" {
		dir, _, err := Hold(parent, "run-")
		if err != nil {
			panic(err)
		}
		// The child outlives it, as daemons do, and must not keep the directory held.
		child := exec.Command("sleep", "60")
		if err := child.Start(); err != nil {
			panic(err)
		}
		fmt.Println(dir, child.Process.Pid)
		select {}
	}
	os.Exit(m.Run())
}

func TestSweep(t *testing.T) {
	parent := t.TempDir()
	var ended []string
	sweep := func(err error) error {
		ended = nil
		return Sweep(parent, "run-", func(dir string) error {
			ended = append(ended, dir)
			if err != nil {
				return err
			}
			return os.RemoveAll(dir)
		})
	}
	mine, release, err := Hold(parent, "run-")
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), "LEFTOVER_HOLDER="+parent)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	var dir string
	var child int
	if _, err := fmt.Fscan(bufio.NewReader(out), &dir, &child); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p, err := os.FindProcess(child); err == nil {
			_ = p.Kill()
		}
	})
	if err := sweep(nil); err != nil || len(ended) != 0 {
		t.Errorf("while both are held: %v, %v", ended, err)
	}
	_ = holder.Process.Kill()
	_ = holder.Wait()
	failed := errors.New("it is busy")
	if err := sweep(failed); !errors.Is(err, failed) || len(ended) != 1 || ended[0] != dir {
		t.Errorf("after its holder was killed: %v, %v, want %s", ended, err, dir)
	}
	if err := sweep(nil); err != nil || len(ended) != 1 {
		t.Errorf("after an attempt that failed: %v, %v", ended, err)
	}
	if err := sweep(nil); err != nil || len(ended) != 0 {
		t.Errorf("swept already: %v, %v", ended, err)
	}
	release()
	release()
	if err := sweep(nil); err != nil || len(ended) != 1 || ended[0] != mine {
		t.Errorf("released with the directory still there: %v, %v, want %s", ended, err, mine)
	}
	other, release, err := Hold(parent, "run-")
	if err := errors.Join(err, os.Remove(other)); err != nil {
		t.Fatal(err)
	}
	release()
	if left, _ := filepath.Glob(parent + "/*"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// A process that is killed while it begins to hold a directory leaves little
// behind, and that is removed, too.
func TestSweepTakesBeginnings(t *testing.T) {
	parent := t.TempDir()
	path := func(name string) string { return filepath.Join(parent, name) }
	err := errors.Join(
		os.WriteFile(path("run-1"+newSuffix), nil, 0o600), // killed before there was a directory
		os.WriteFile(path("run-2"+newSuffix), nil, 0o600), os.Mkdir(path("run-2"), 0o700),
		os.WriteFile(path("run-3"+heldSuffix), nil, 0o600), // killed after its directory was gone
		os.WriteFile(path("run-notes"+newSuffix), []byte("somebody's"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	lives, err := lockNew(parent, "run-")
	if err != nil {
		t.Fatal(err)
	}
	defer lives.Close()
	if err := Sweep(parent, "run-", func(dir string) error { return errors.New("ended: " + dir) }); err != nil {
		t.Error(err)
	}
	left, _ := filepath.Glob(path("*"))
	if want := []string{lives.Name(), path("run-notes" + newSuffix)}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
}

// What others put into a directory that everybody may write must not get
// processes killed.
func TestSweepLeavesOthersAlone(t *testing.T) {
	parent := t.TempDir()
	made := func(name string) string {
		dir := filepath.Join(parent, name)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(dir+heldSuffix, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	mine, linked := made("run-mine"), filepath.Join(parent, "run-linked")
	if err := errors.Join(os.Symlink(mine, linked), os.WriteFile(linked+heldSuffix, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(parent, "run-socket"+heldSuffix))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if os.Geteuid() == 0 {
		const nobody = 65534
		file, dir := made("run-their-file"), made("run-their-directory")
		if err := errors.Join(os.Chown(file+heldSuffix, nobody, nobody), os.Chown(dir, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
	} else {
		t.Log("what other users made is left out: only root can make that")
	}
	var ended []string
	err = Sweep(parent, "run-", func(dir string) error {
		ended = append(ended, dir)
		return os.RemoveAll(dir)
	})
	if err != nil || len(ended) != 1 || ended[0] != mine {
		t.Errorf("ended %v, %v", ended, err)
	}
}
