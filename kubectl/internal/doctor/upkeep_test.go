package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// systemctl stands in for systemd's, which runs no machine here (test/install TestMachine
// has one that it runs). It answers with what the files beside it say of a unit.
const systemctl = "#!/bin/sh\ncat \"$(dirname \"$0\")/$3\"\n"

func upkeep(t *testing.T) (u *Upkeep, says func(unit, text string)) {
	t.Helper()
	dir := t.TempDir()
	u = &Upkeep{
		Systemctl:      filepath.Join(dir, "systemctl"),
		EtcdData:       filepath.Join(dir, "etcd"),
		Backups:        filepath.Join(dir, "backups"),
		BackupSettings: filepath.Join(dir, "settings"),
		Now:            func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) },
	}
	says = func(unit, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, unit), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	says("systemctl", systemctl)
	for _, name := range []string{"kctl-renew", "kctl-backup"} {
		says(name+".timer", "Result=success\nLoadState=loaded\nActiveState=active\n")
		says(name+".service", "Result=success\nLoadState=loaded\nActiveState=inactive\n")
	}
	return u, says
}

func TestRenewalIsLookedAfter(t *testing.T) {
	for _, tc := range []struct {
		timer, service string
		result         Result
		says           string
	}{
		{"LoadState=loaded\nActiveState=active\n", "Result=success\n", OK, "renews what ends soon"},
		{"LoadState=loaded\nActiveState=inactive\n", "Result=success\n", Warn, "`systemctl start kctl-renew.timer`"},
		{"LoadState=not-found\nActiveState=inactive\n", "Result=success\n", Warn, "there is no kctl-renew.timer"},
		{"LoadState=masked\nActiveState=inactive\n", "Result=success\n", OK, "is masked"},
		{"LoadState=loaded\nActiveState=active\n", "Result=exit-code\n", Warn, "`journalctl -u kctl-renew`"},
	} {
		u, says := upkeep(t)
		says("kctl-renew.timer", tc.timer)
		says("kctl-renew.service", tc.service)
		checks := u.Checks(t.Context())
		if len(checks) != 1 { // there is no etcd
			t.Fatalf("%+v: %+v", tc, checks)
		}
		if got := checks[0]; got.Name != "renewal" || got.Result != tc.result || !strings.Contains(got.Detail+got.Advice, tc.says) {
			t.Errorf("%+v: %+v", tc, got)
		}
	}
	u, _ := upkeep(t)
	u.Systemctl += "-none"
	if checks := u.Checks(t.Context()); len(checks) != 1 || checks[0].Result != Warn {
		t.Errorf("without systemctl: %+v", checks)
	}
}

func TestBackupsAreLookedAfter(t *testing.T) {
	const active, inactive = "LoadState=loaded\nActiveState=active\n", "LoadState=loaded\nActiveState=inactive\n"
	const good, bad = "Result=success\n", "Result=exit-code\n"
	for i, tc := range []struct {
		timer, service string
		there          []string
		settings       string
		result         Result
		says           string
	}{
		{active, good, []string{"backup-20261130T021122.123456789Z", ".lock", "unfinished-7"}, "", OK, "9h old"},
		{active, good, nil, "", Warn, "there is no backup in "},
		{active, good, []string{"backup-20261101T021122.1Z", "backup-20261127T021122.1Z"}, "", Warn, "3d9h old"},
		{active, good, []string{"backup-20261101T021122.1Z", "backup-20380119T031407.1Z"}, "", Warn, "29d old"},
		{active, bad, []string{"backup-20261130T021122.1Z"}, "", Warn, "`journalctl -u kctl-backup`"},
		{inactive, good, []string{"backup-20261130T021122.1Z"}, "", Warn, "`systemctl enable --now kctl-backup.timer`"},
		{"LoadState=masked\nActiveState=inactive\n", good, nil, "", OK, "is masked"},
		{active, good, []string{"backup-20261130T021122.1Z"}, "#BACKUP_DIR=/x\nBACKUP_DIR=\"/nowhere\"\n", Warn, "there is no backup in /nowhere"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			u, says := upkeep(t)
			says("kctl-backup.timer", tc.timer)
			says("kctl-backup.service", tc.service)
			says("settings", tc.settings)
			if err := errors.Join(os.MkdirAll(filepath.Join(u.EtcdData, "member"), 0o700), os.Mkdir(u.Backups, 0o700)); err != nil {
				t.Fatal(err)
			}
			for _, name := range tc.there {
				if err := os.Mkdir(filepath.Join(u.Backups, name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if got := find(t, u.Checks(t.Context()), "backup"); got.Result != tc.result || !strings.Contains(got.Detail+got.Advice, tc.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}
