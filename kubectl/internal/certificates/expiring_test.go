package certificates

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const day = 24 * time.Hour

// renewed are the files that were renewed.
func renewed(changes []Change) (files []string) {
	for _, c := range changes {
		if strings.HasPrefix(c.Done, Renewed) {
			files = append(files, c.File)
		}
	}
	return files
}

// What ends soon is renewed once, and nothing else is written.
func TestRenewExpiringRenewsWhatEndsSoon(t *testing.T) {
	d := made(t)
	start := time.Now()
	if _, err := d.Renew([]string{"admin", "etcd/peer"}, start.Add(100*day)); err != nil {
		t.Fatal(err)
	}
	before := content(t, d.Dir)
	changes, err := d.RenewExpiring(nil, 90*day, start.Add(274*day))
	if err != nil || len(changes) != 10 || len(renewed(changes)) != 0 {
		t.Errorf("91 days before: %v, %v", changes, err)
	}
	if differ := same(before, content(t, d.Dir)); len(differ) > 0 {
		t.Errorf("91 days before, changed: %v", differ)
	}
	changes, err = d.RenewExpiring(nil, 90*day, start.Add(276*day))
	if files := renewed(changes); err != nil || len(files) != 8 || slices.Contains(files, d.Kubeconfig("admin")) ||
		slices.Contains(files, d.Path("etcd/peer.crt")) {
		t.Errorf("89 days before: %v, %v", changes, err)
	}
	if differ := same(before, content(t, d.Dir)); !slices.Equal(slices.Sorted(slices.Values(differ)), slices.Sorted(slices.Values(renewed(changes)))) {
		t.Errorf("changed %v, and told of %v", differ, renewed(changes))
	}
	if changes, err = d.RenewExpiring(nil, 90*day, start.Add(276*day)); err != nil || len(renewed(changes)) != 0 {
		t.Errorf("once more: %v, %v", changes, err)
	}
	if changes, err = d.RenewExpiring([]string{"admin"}, 90*day, start.Add(500*day)); err != nil || len(renewed(changes)) != 1 {
		t.Errorf("one that has expired, by name: %v, %v", changes, err)
	}
}

// Certificates that are made for a month are not renewed every day because of it.
func TestRenewExpiringOfShortLives(t *testing.T) {
	d := made(t)
	start := time.Now()
	d.Lasts = 30 * day
	if _, err := d.Renew(nil, start); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]int{1 * day: 0, 19 * day: 0, 21 * day: 10} {
		d := &Directory{Dir: d.Dir, Entries: d.Entries, Lasts: d.Lasts}
		saved := content(t, d.Dir)
		if changes, err := d.RenewExpiring(nil, 90*day, start.Add(after)); err != nil || len(renewed(changes)) != want {
			t.Errorf("after %s: %v, %v", after, changes, err)
		}
		restore(t, saved)
	}
}

// A file that can't be renewed is told, even while it lasts, and the others are renewed.
func TestRenewExpiringTellsWhatIsBroken(t *testing.T) {
	d := made(t)
	if err := os.Remove(d.Path("front-proxy-client.key")); err != nil {
		t.Fatal(err)
	}
	if changes, err := d.RenewExpiring(nil, 90*day, time.Now()); err == nil || !strings.Contains(err.Error(), "exists without its key") || len(changes) != 9 {
		t.Errorf("while it lasts: %v, %v", changes, err)
	}
	if changes, err := d.RenewExpiring(nil, 90*day, time.Now().Add(300*day)); err == nil || len(renewed(changes)) != 9 {
		t.Errorf("when all end: %v, %v", changes, err)
	}
	if changes, err := (&Directory{Dir: t.TempDir(), Entries: d.Entries}).RenewExpiring(nil, 90*day, time.Now()); err == nil {
		t.Errorf("an empty directory: %v", changes)
	}
}

// Who could read a certificate can read the renewed one, and no half of one is ever there.
func TestRenewKeepsOwnersAndModes(t *testing.T) {
	d := made(t)
	files := []string{d.Path("apiserver.crt"), d.Path("etcd/server.crt"), d.Kubeconfig("scheduler")}
	owner := os.Geteuid()
	for i, file := range files {
		if os.Geteuid() == 0 {
			owner = 4000 + i
		}
		if err := os.Chown(file, owner, -1); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.RenewExpiring(nil, 90*day, time.Now().Add(300*day)); err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		if os.Geteuid() == 0 {
			owner = 4000 + i
		}
		var is unix.Stat_t
		if err := unix.Stat(file, &is); err != nil || int(is.Uid) != owner || is.Mode&0o777 != 0o640 {
			t.Errorf("%s: of %d, %o, %v", file, is.Uid, is.Mode, err)
		}
	}
	if left, err := filepath.Glob(d.Path("*.new")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
