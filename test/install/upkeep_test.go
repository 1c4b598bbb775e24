package install_test

import (
	"fmt"
	"strings"

	"kctl/test/harness"
)

// files are the sums of what is in /etc/kctl, and who may read it.
const files = "cd /etc/kctl; find . -type f | sort | xargs sha256sum; find . -type f -printf '%p %u:%g %m\\n' | sort"

// soon makes certificates of whose life, which begins before they are made, less than a
// third is left.
const soon = "--expires=2m"

// upkeep is what timers do in years: they renew certificates that end soon, and nothing
// else, and take backups; and doctor says so when they don't.
func upkeep(m *machine) {
	m.becomes("kctl-renew.timer", "ActiveState", "active") // with the control plane
	m.tells("kctl doctor", "kctl-renew.timer renews what ends soon", "kctl-backup.timer does not run; there is no backup")
	before := m.sh(files)
	m.do("systemctl", "start", "kctl-renew")
	if after := m.sh(files); after != before {
		m.t.Errorf("a year before they end, what was\n%s\nis\n%s", before, after)
	}
	if log := m.do("journalctl", "-u", "kctl-renew", "-o", "cat", "--no-pager"); strings.Contains(log, "the scheduler is restarted") {
		m.t.Errorf("for nothing:\n%s", log)
	}

	m.do("kctl", "pki", "renew", "apiserver", "etcd/server", "scheduler", soon)
	m.do("systemctl", "restart", "kctl-scheduler") // by hand, as the page says
	before = m.sh(files)
	scheduler := m.show("kctl-scheduler", "MainPID")
	m.do("systemctl", "start", "kctl-renew")
	m.hasChanged(before, "apiserver.crt", "server.crt", "scheduler.kubeconfig")
	harness.Eventually(m.t, patience, func() error {
		if is, state := m.show("kctl-scheduler", "MainPID"), m.show("kctl-scheduler", "ActiveState"); is == scheduler || state != "active" {
			return fmt.Errorf("the scheduler is %s, process %s, and had the old kubeconfig as %s", state, is, scheduler)
		}
		return nil
	})
	m.tells("journalctl -u kctl-renew -o cat --no-pager", "/etc/kctl/pki/apiserver.crt: renewed until ", "/etc/kctl/pki/etcd/peer.crt: kept until ",
		"the scheduler is restarted")
	m.eventually("kctl", "get", "--raw", "/readyz")

	// A renewal that fails says so, and is tried again.
	m.do("kctl", "pki", "renew", "admin", soon)
	m.sh("mv /etc/kctl/pki/ca.key /root/kept")
	if out, err := m.try("systemctl", "start", "kctl-renew"); err == nil {
		m.t.Errorf("renewed without the authority's key:\n%s", out)
	}
	m.tells("kctl doctor", "the last renewal of certificates has failed")
	m.sh("mv /root/kept /etc/kctl/pki/ca.key && systemctl start kctl-renew")
	m.do("systemctl", "stop", "kctl-renew.timer")
	m.tells("kctl doctor", "kctl-renew.timer does not run")
	m.do("systemctl", "start", "kctl-renew.timer")

	m.do("systemctl", "enable", "--now", "kctl-backup.timer")
	m.sh("echo KEEP=2 >/etc/default/kctl-backup")
	for range 3 {
		m.do("systemctl", "start", "kctl-backup")
	}
	if kept := strings.Fields(m.sh("ls /var/backups/kctl")); len(kept) != 2 {
		m.t.Errorf("kept: %q", kept)
	}
	m.sh("newest=$(ls -d /var/backups/kctl/backup-* | tail -n 1); cd $newest && sha256sum --check --quiet SHA256SUMS && tar -tf files.tar | " +
		"grep -qx etc/kctl/pki/ca.key")
	m.sh("! find /var/backups/kctl -perm /077 | grep .")
	m.tells("kctl doctor", "the newest in /var/backups/kctl is ")

	// One that fails takes nothing away.
	m.sh("echo ETCDCTL_ENDPOINTS=https://127.0.0.1:1 >>/etc/default/kctl-backup")
	if out, err := m.try("systemctl", "start", "kctl-backup"); err == nil {
		m.t.Errorf("a backup of nothing:\n%s", out)
	}
	if kept := strings.Fields(m.sh("ls /var/backups/kctl")); len(kept) != 2 {
		m.t.Errorf("after a failure, kept: %q", kept)
	}
	m.tells("kctl doctor", "the last backup has failed")
	m.sh("sed -i /ENDPOINTS/d /etc/default/kctl-backup && systemctl start kctl-backup")
}

// tells checks what a command prints, whether or not it succeeds.
func (m *machine) tells(line string, all ...string) {
	m.t.Helper()
	out, _ := m.try("sh", "-c", line)
	for _, says := range all {
		if !strings.Contains(out, says) {
			m.t.Errorf("%s does not say %q:\n%s", line, says, out)
		}
	}
}

// hasChanged checks that these files of /etc/kctl, and no others, are not what they were,
// and that nothing else about them is new.
func (m *machine) hasChanged(before string, names ...string) {
	m.t.Helper()
	now := map[string]bool{}
	for line := range strings.Lines(m.sh(files)) {
		now[line] = true
	}
	var changed []string
	for line := range strings.Lines(before) {
		if fields := strings.Fields(line); !now[line] {
			if len(fields) != 2 {
				m.t.Errorf("it was %s", line)
			}
			changed = append(changed, fields[1][strings.LastIndex(fields[1], "/")+1:])
		}
	}
	if got, want := strings.Join(changed, " "), strings.Join(names, " "); got != want {
		m.t.Errorf("changed: %s, want %s", got, want)
	}
}
