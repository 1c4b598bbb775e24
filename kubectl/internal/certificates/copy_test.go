package certificates

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A program's directory gets what is named and what was renewed since, with keys that only
// their owner can read, but of no authority.
func TestCopyIsAllThatAProgramSees(t *testing.T) {
	now := time.Now()
	d := &Directory{Dir: t.TempDir(), Entries: ControlPlane(nil, nil), Server: "https://localhost:6443"}
	if _, err := d.Make(now); err != nil {
		t.Fatal(err)
	}
	to, names := t.TempDir(), []string{Authority, "scheduler-server", "scheduler"}
	done := func() (files []string) {
		t.Helper()
		changes, err := d.Copy(names, to)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range changes {
			if change.Done == Copied {
				files = append(files, strings.TrimPrefix(change.File, to))
			}
		}
		return files
	}
	want := []string{"/pki/ca.crt", "/pki/scheduler-server.key", "/pki/scheduler-server.crt", "/scheduler.kubeconfig"}
	if got := done(); !slices.Equal(got, want) {
		t.Errorf("it copies %v, want %v", got, want)
	}
	for _, file := range want {
		from, errFrom := os.ReadFile(d.Dir + file)
		copied, errCopied := os.ReadFile(to + file)
		info, err := os.Stat(to + file)
		if errFrom != nil || errCopied != nil || string(from) != string(copied) {
			t.Errorf("%s differs: %v, %v", file, errFrom, errCopied)
		}
		if public := filepath.Ext(file) == ".crt"; err != nil || (info.Mode().Perm() == 0o600) == public {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	if _, err := d.Renew([]string{"scheduler-server"}, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := done(); !slices.Equal(got, []string{"/pki/scheduler-server.crt"}) {
		t.Errorf("after a renewal it copies %v", got)
	}
	if _, err := d.Copy([]string{"nobody"}, to); err == nil || !strings.Contains(err.Error(), `no "nobody" to copy; there are ca,`) {
		t.Errorf("got %v", err)
	}
}
