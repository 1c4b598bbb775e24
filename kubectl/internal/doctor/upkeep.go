package doctor

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Upkeep is what systemd's timers do on a machine of the control plane: they renew its
// certificates, and take backups of its etcd.
type Upkeep struct {
	Systemctl string // the program
	EtcdData  string // there are backups where etcd's data is
	Backups   string // where they go, unless BackupSettings say otherwise
	// BackupSettings is the file of settings of the unit.
	BackupSettings string
	Now            func() time.Time
}

// NewUpkeep is that of this machine, with our units.
func NewUpkeep(now func() time.Time) *Upkeep {
	return &Upkeep{
		Systemctl:      "systemctl",
		EtcdData:       "/var/lib/kctl-etcd",
		Backups:        "/var/backups/kctl",
		BackupSettings: "/etc/default/kctl-backup",
		Now:            now,
	}
}

// oldBackup is how old the newest backup of a daily timer never is: two of them failed, or
// did not take place.
const oldBackup = 50 * time.Hour

// Checks looks at the timers and at what they have done.
func (u *Upkeep) Checks(ctx context.Context) []Check {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	renewal, err := u.look(ctx, "kctl-renew")
	if err != nil {
		return []Check{warn("renewal", "", "systemctl: %v", err)}
	}
	checks := []Check{checkRenewal(renewal)}
	if _, err := os.Stat(filepath.Join(u.EtcdData, "member")); err != nil {
		return checks // its etcd is elsewhere, or this user may not know
	}
	backup, err := u.look(ctx, "kctl-backup")
	if err != nil {
		return append(checks, warn("backup", "", "systemctl: %v", err))
	}
	return append(checks, u.checkBackup(backup))
}

// timer is what systemd says of NAME.timer and NAME.service.
type timer struct{ load, active, result string }

func (t timer) masked() bool { return t.load == "masked" }
func (t timer) failed() bool { return t.result != "success" && t.result != "" }

func (u *Upkeep) look(ctx context.Context, name string) (timer, error) {
	var said [2]map[string]string
	for i, unit := range []string{name + ".timer", name + ".service"} {
		out, err := exec.CommandContext(ctx, u.Systemctl, "show", "--property=LoadState,ActiveState,Result", unit).Output()
		if err != nil {
			return timer{}, cmp.Or(ctx.Err(), err)
		}
		said[i] = assignments(out)
	}
	return timer{said[0]["LoadState"], said[0]["ActiveState"], said[1]["Result"]}, nil
}

// assignments are the lines NAME=VALUE of a text, as systemd reads the quotes of its
// files.
func assignments(text []byte) map[string]string {
	all := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if name, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "="); ok {
			all[name] = strings.Trim(value, `"'`)
		}
	}
	return all
}

func checkRenewal(t timer) Check {
	const name = "renewal"
	switch {
	case t.masked():
		return ok(name, "kctl-renew.timer is masked: certificates are renewed in another way")
	case t.load == "not-found":
		return warn(name, "install kctl-control-plane anew, or run `kctl pki renew all` before they end",
			"there is no kctl-renew.timer, so nobody renews the certificates, which end a year after they were made")
	case t.failed():
		return warn(name, "`journalctl -u kctl-renew` says why; `systemctl start kctl-renew` tries again",
			"the last renewal of certificates has failed")
	case t.active != "active":
		return warn(name, "`systemctl start kctl-renew.timer`, which kctl-apiserver and kctl-etcd start from then on",
			"kctl-renew.timer does not run, so nobody renews the certificates, which end a year after they were made")
	}
	return ok(name, "kctl-renew.timer renews what ends soon")
}

func (u *Upkeep) checkBackup(t timer) Check {
	const name = "backup"
	if t.masked() {
		return ok(name, "kctl-backup.timer is masked: backups are taken in another way")
	}
	dir := u.Backups
	if settings, err := os.ReadFile(u.BackupSettings); err == nil {
		dir = cmp.Or(assignments(settings)["BACKUP_DIR"], dir)
	}
	now := u.Now()
	newest, err := newestBackup(dir, now)
	age := now.Sub(newest)
	const start = "`systemctl start kctl-backup` takes one, "
	switch {
	case errors.Is(err, fs.ErrPermission):
		return warn(name, asRoot, "this user has no access to %s", dir)
	case err != nil:
		return warn(name, "", "%v", err)
	case t.failed():
		return warn(name, "`journalctl -u kctl-backup` says why; "+start+"if it can", "the last backup has failed; %s", told(newest, age, dir))
	case t.active != "active":
		return warn(name, "`systemctl enable --now kctl-backup.timer` takes one every day, or mask it if backups are taken in another way",
			"kctl-backup.timer does not run; %s", told(newest, age, dir))
	case newest.IsZero() || age > oldBackup:
		return warn(name, start+"and `systemctl list-timers kctl-backup` says when the next one is due", "%s", told(newest, age, dir))
	}
	return ok(name, "%s", told(newest, age, dir))
}

func told(newest time.Time, age time.Duration, dir string) string {
	if newest.IsZero() {
		return "there is no backup in " + dir
	}
	return "the newest in " + dir + " is " + duration.HumanDuration(age) + " old"
}

// newestBackup is when the newest in a directory was taken: zero without any. Those that seem
// to be taken later than now are of a clock that was ahead, and tell nothing.
func newestBackup(dir string, now time.Time) (time.Time, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, err
	}
	for _, entry := range slices.Backward(entries) { // they are sorted, and have their time for a name
		text, found := strings.CutPrefix(entry.Name(), "backup-")
		if taken, err := time.Parse("20060102T150405.999999999Z", text); found && err == nil && !taken.After(now) {
			return taken, nil
		}
	}
	return time.Time{}, nil
}
