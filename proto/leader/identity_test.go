package leader

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// identityOf is what NewIdentity would return in another process.
func identityOf(t *testing.T, pid int) string {
	t.Helper()
	process := fmt.Sprint(pid)
	place, err := pidNamespaceOf(process)
	if err != nil {
		t.Fatal(err)
	}
	start, _, err := startTimeOf(process)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("host_%s.%d.%d.x", place, pid, start)
}

func startOfSelf(t *testing.T) uint64 {
	t.Helper()
	start, _, err := startTimeOf("self")
	if err != nil {
		t.Fatal(err)
	}
	return start
}

func TestHolderThatWasKilledIsNotWaitedFor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are told apart on Linux only")
	}
	child := exec.Command("sleep", "3600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	ours, holder := NewIdentity("host"), identityOf(t, child.Process.Pid)

	if hasEnded(holder, ours) {
		t.Error("a living process is said to have ended")
	}
	if hasEnded(ours, ours) {
		t.Error("we are said to have ended")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if reused := strings.Replace(ours, fmt.Sprint(startOfSelf(t)), "1", 1); !hasEnded(reused, ours) {
		t.Error("an earlier process of a PID that is in use again is said to live")
	}
	if !hasEnded(holder, ours) {
		t.Error("a dead process is said to live")
	}
	otherHost := strings.Replace(holder, "host_", "elsewhere_", 1)
	for _, unknown := range []string{otherHost, "host_6ba7b810-9dad-11d1-80b4-00c04fd430c8", "", "_", "a.b.c.d.e", holder + ".more"} {
		if hasEnded(unknown, ours) {
			t.Errorf("%q is said to have ended, though nobody can know", unknown)
		}
	}

	synctest.Test(t, func(t *testing.T) {
		store := &fakeLeases{}
		if ok, err := elector(t, holder, store).tryAcquireOrRenew(t.Context()); !ok {
			t.Fatal(err)
		}
		heir := start(t, ours, store)
		synctest.Wait()
		if !heir.Leading() {
			t.Error("waits for a dead process")
		}
		heir.stop()
		<-heir.result
	})
}
