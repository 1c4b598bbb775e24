package install_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kctl/test/harness"
)

// TestPages follows the documentation on a Debian machine booted by its own
// systemd. It types what the pages say, and nothing else but what a user's
// machine has done already.
func TestPages(t *testing.T) {
	harness.NeedLong(t, "it makes and boots a whole Debian")
	harness.NeedRoot(t)
	need(t, "debootstrap", "unshare", "nsenter", "make")
	p := &pages{
		install:         harness.OpenPage(t, "docs/install.md"),
		joining:         harness.OpenPage(t, "docs/joining.md"),
		operations:      harness.OpenPage(t, "docs/operations.md"),
		troubleshooting: harness.OpenPage(t, "docs/troubleshooting.md"),
	}
	built := builds(t, p.install.Take(t, "Packages"))
	newer, images := packages(t, "99.0.0", "99.0.0"), archives(t)
	m := boot(t, debian(t))
	m.copy("/root", built...)
	for name, file := range newer {
		if name == "kctl-etcd" {
			m.copy("/opt/etcd", file)
		} else {
			m.copy("/opt/newer", file)
		}
	}
	m.copy("/opt/images", filepath.Join(images, "pause.tar"), filepath.Join(images, "demo.tar"))
	run(t, "cp", "-r", filepath.Join(harness.Root(), "deploy"), m.path("/root/deploy"))
	runtime(t, m)
	m.do("rm", "/etc/cni/net.d/10-pods.conflist") // Debian's containerd has no network either
	m.sh(`printf '127.0.0.1 localhost\n192.0.2.11 node-1 lb.example.org\n' >/etc/hosts`)
	// There is only one machine: it is the other machine, too.
	m.sh(`printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >/usr/local/bin/ssh && chmod +x /usr/local/bin/ssh`)
	_ = t.Run("install", m.in(p.installs)) &&
		t.Run("join", m.in(p.joins)) &&
		t.Run("troubleshooting", m.in(p.shoots)) &&
		t.Run("operations", m.in(p.operates)) &&
		t.Run("leaving", m.in(p.leaves)) &&
		t.Run("without packages", m.in(p.withoutPackages)) &&
		t.Run("lost for good", m.in(func(m *machine) { p.returns(m, built) }))
}

// pages are those that the test follows.
type pages struct{ install, joining, operations, troubleshooting *harness.Page }

// builds builds packages by the page's lines, and returns their files.
func builds(t *testing.T, script string) []string {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(harness.Root(), "build/packages/*.deb"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	typesHere(t, script, "COMPRESSION=none")
	made, err := filepath.Glob(filepath.Join(harness.Root(), "build/packages/*.deb"))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// typesHere runs lines on the host, where the programs are built, in a clone of
// the repository.
func typesHere(t *testing.T, script, variable string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = harness.Root(), append(os.Environ(), variable)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
}

// types runs the next blocks under a heading, in one shell.
func (m *machine) types(dir string, page *harness.Page, under string, blocks int) string {
	m.t.Helper()
	script := "cd " + dir + "\n"
	for range blocks {
		script += page.Take(m.t, under)
	}
	return m.do("bash", "-euo", "pipefail", "-c", script)
}

func (p *pages) installs(m *machine) {
	m.types("/root", p.install, "The control plane", 1)
	m.eventually("sh", "-c", endpoints+" | grep -qx 192.0.2.11")
	m.types("/root", p.install, "A node", 1)
	// The node must not care how full the disk is: it is the host's.
	m.sh("echo 'KUBELET_FLAGS=--image-gc-high-threshold=100 --eviction-hard=memory.available<50Mi' >/etc/default/kctl-kubelet")
	m.types("/root", p.install, "A node", 1)
	harness.Eventually(m.t, patience, func() error { // the unit is active before the node has registered
		_, err := m.try("kctl", "get", "node", "node-1")
		return err
	})
	m.types("/root", p.install, "A network between the nodes", 1)
	m.types("/root", p.install, "A network between the nodes", 1)
	m.types("/root", p.install, "systemd's control groups", 1)
	m.do("kctl", "wait", "node/node-1", "--for=condition=Ready", "--timeout=120s")
	m.do("kctl", "run", "web", "--image=kctl.local/demo", "--image-pull-policy=Never", "--port=8080")
	m.do("kctl", "wait", "pod/web", "--for=condition=Ready", "--timeout=120s")
	m.becomes("kubepods.slice", "ActiveState", "active")
	if told := m.types("/root", p.install, "Looking at it", 1); !strings.Contains(told, "kctl-apiserver.service") ||
		!strings.Contains(told, "READY") && !strings.Contains(told, "ready") {
		m.t.Errorf("systemctl and journalctl say\n%s", told)
	}
}

func (p *pages) joins(m *machine) {
	m.types("/root", p.joining, "Making them", 1)
	m.eventually("kctl", "get", "--raw", "/readyz") // under the new name, once the server has its new certificate
	m.types("/root", p.joining, "Looking after them", 1)
	if told := m.do("kctl", "--kubeconfig=/root/alice.kubeconfig", "auth", "whoami"); !strings.Contains(told, "developers") {
		m.t.Errorf("alice is\n%s", told)
	}
	m.types("/root", p.joining, "Tokens", 1)
	m.sh("kctl certificate approve $(kctl get csr -o name)")
	m.eventually("kctl", "logs", "web")
}

// eventually is do, repeated until it succeeds.
func (m *machine) eventually(name string, args ...string) {
	m.t.Helper()
	harness.Eventually(m.t, patience, func() error {
		out, err := m.try(name, args...)
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
}

func (p *pages) operates(m *machine) {
	const under = "Looking into a running program"
	m.do("kctl", "create", "configmap", "before")
	m.types("/root", p.operations, "Backup", 2)
	m.do("kctl", "create", "configmap", "after")
	m.types("/root", p.operations, "Restore", 1)
	m.eventually("kctl", "get", "--raw", "/readyz")
	m.types("/root", p.operations, "Restore", 1)
	m.do("kctl", "get", "configmap", "before")
	if out, err := m.try("kctl", "get", "configmap", "after"); err == nil {
		m.t.Errorf("a write after the backup is there:\n%s", out)
	}
	m.do("kctl", "wait", "node/node-1", "--for=condition=Ready", "--timeout=120s")
	m.do("kctl", "wait", "pod/web", "--for=condition=Ready", "--timeout=120s")
	m.types("/root", p.operations, "Renewing certificates", 1)
	if told := m.types("/root", p.operations, under, 3); !strings.Contains(told, " to 4") {
		m.t.Errorf("the level of the log: %q", told)
	}
	m.sh("test -s /root/heap")
	m.types("/root", p.operations, "Metrics", 1)
	m.sh("cd /etc/prometheus/kctl && grep -q BEGIN prometheus.crt && grep -q BEGIN prometheus.key && grep -q BEGIN ca.crt")
	m.sh("! find /root/alice.kubeconfig /root/prometheus.kubeconfig /root/admin.key /etc/prometheus/kctl/prometheus.key -perm /077 | grep .")
	m.types("/opt/newer", p.install, "Upgrade and removal", 1)
	if got := m.do("dpkg-query", "--show", "--showformat=${Version}", "kctl-control-plane"); got != "99.0.0" {
		m.t.Errorf("after the upgrade there is version %s", got)
	}
	m.eventually("kctl", "get", "--raw", "/readyz")
	if state := m.show("kctl-kubelet", "ActiveState"); state != "active" {
		m.t.Errorf("after an upgrade of the control plane, the kubelet is %s", state)
	}
	was := m.show("kctl-kubelet", "MainPID")
	m.sh("dpkg -i /opt/newer/*.deb")
	harness.Eventually(m.t, patience, func() error {
		if is, state := m.show("kctl-kubelet", "MainPID"), m.show("kctl-kubelet", "ActiveState"); is == was || state != "active" {
			return fmt.Errorf("the kubelet is %s, process %s, and was %s", state, is, was)
		}
		return nil
	})
	p.replacesEtcd(m)
}

// replacesEtcd puts our etcd in the place of Debian's, which is too old for its data to be
// taken over.
func (p *pages) replacesEtcd(m *machine) {
	if out, err := m.try("sh", "-c", "dpkg -i /root/kctl-etcd_*.deb"); err == nil ||
		!strings.Contains(out, "can't take over /var/lib/kctl-etcd/member, which etcd 3.4") {
		m.t.Errorf("beside data of Debian's etcd: %v\n%s", err, out)
	}
	m.do("kctl", "create", "configmap", "with-the-old-one")
	m.types("/root", p.operations, "A newer etcd", 1)
	m.do("kctl", "get", "configmap", "with-the-old-one")
	if runs := m.sh("readlink /proc/$(systemctl show --value -p MainPID kctl-etcd)/exe"); runs != "/usr/lib/kctl/etcd\n" {
		m.t.Errorf("kctl-etcd runs %s", runs)
	}
	m.sh("dpkg -i /opt/etcd/*.deb") // its own data is no obstacle
	m.do("kctl", "wait", "node/node-1", "--for=condition=Ready", "--timeout=120s")
}

// leaves takes the machine out of its cluster while a pod runs on it.
func (p *pages) leaves(m *machine) {
	m.eventually("kctl", "wait", "pod/web", "--for=condition=Ready", "--timeout=120s")
	// A pod that no controller would recreate blocks a drain.
	if out, err := m.try("kctl", "drain", "node-1", "--ignore-daemonsets"); err == nil || !strings.Contains(out, "--force") {
		m.t.Errorf("a pod without a controller was drained: %v\n%s", err, out)
	}
	m.do("kctl", "delete", "pod", "web", "--timeout=120s")
	m.types("/root", p.joining, "Joining", 1)
	if left := m.do("kctl", "get", "nodes,pods", "-A", "-o", "name"); left != "" {
		m.t.Errorf("left in the cluster:\n%s", left)
	}
	m.sh("! systemctl is-enabled --quiet kctl-kubelet && ! test -e /var/lib/kubelet")
}

// withoutPackages replaces the packages by what `make install` installs.
func (p *pages) withoutPackages(m *machine) {
	m.do("apt-get", "purge", "-y", "kctl", "kctl-control-plane", "kctl-etcd", "kctl-node")
	typesHere(m.t, p.install.Take(m.t, "Without packages"), "DESTDIR="+m.root)
	m.types("/root", p.install, "Without packages", 1)
	m.do("kctl", "pki", "init")
	m.do("systemctl", "enable", "--now", "kctl-etcd", "kctl-apiserver", "kctl-scheduler")
	m.sh("echo 'KUBELET_FLAGS=--image-gc-high-threshold=100 --eviction-hard=memory.available<50Mi' >/etc/default/kctl-kubelet")
	m.sh("$(kctl token create --print-join-command --node-network=routes)")
	for _, unit := range []string{"kctl-apiserver", "kctl-kubelet"} {
		if runs := m.sh("readlink /proc/$(systemctl show --value -p MainPID " + unit + ")/exe"); !strings.HasPrefix(runs, "/usr/local/lib/kctl/") {
			m.t.Errorf("%s runs %s", unit, runs)
		}
	}
	m.eventually("kctl", "get", "node", "node-1")
}

// returns restores a lost machine's backup on a new machine.
func (p *pages) returns(lost *machine, packages []string) {
	lost.halt()
	m := boot(lost.t, debian(lost.t))
	m.copy("/root", packages...)
	run(m.t, "sh", "-c", "cp -a "+lost.path("/var/backups/kctl/backup-*")+" "+m.path("/root"))
	m.types("/root", p.operations, "On another machine", 1)
	m.do("kctl", "get", "configmap", "before")
	if told := m.do("kctl", "auth", "can-i", "create", "pods"); !strings.Contains(told, "yes") {
		m.t.Errorf("the old kubeconfig may do nothing: %s", told)
	}
}

// symptom is something that goes wrong on the machine.
type symptom struct {
	breaks, asks string
	says         string // in the output of asks and on the page
	mends        string
}

var symptoms = []symptom{
	{"", "KUBECONFIG=/nowhere kctl doctor", "no cluster is configured", ""},
	{"systemctl stop kctl-apiserver", "kctl doctor", "nothing listens", "systemctl start kctl-apiserver"},
	{"systemctl stop kctl-etcd", "kctl doctor", "not ready: etcd", "systemctl start kctl-etcd"},
	{"echo 192.0.2.11 nickname >>/etc/hosts", "kctl --server=https://nickname:6443 doctor", "is not for ", ""},
	{"chmod 644 /etc/kctl/pki/sa.key", "kctl pki check", "can be read or written by others", "chmod 600 /etc/kctl/pki/sa.key"},
	{"cd /etc/kctl/pki; mv apiserver.key kept; cp front-proxy-client.key apiserver.key", "kctl pki check", "is not the key of",
		"cd /etc/kctl/pki; mv kept apiserver.key"},
	{"mv /etc/kctl/pki/front-proxy-client.key /root/kept", "kctl pki check", "exists without", "mv /root/kept /etc/kctl/pki/front-proxy-client.key"},
	{"", "kctl join 192.0.2.11:6443 --token=abcdef.0123456789abcdef --dir=/root/other --discovery-token-ca-cert-hash=sha256:" + zeros,
		"differs from --discovery-token-ca-cert-hash", ""},
	{"", unknownToken, "the server does not know the token", ""},
	{"", unknownToken, "port 10250 is taken", ""},
	{"kctl cordon node-1", "kctl doctor", "takes no new pods (cordoned)", "kctl uncordon node-1"},
	{"systemctl stop kctl-kubelet", "kctl doctor", "has not renewed its lease", "systemctl start kctl-kubelet"},
	{"kctl run bad --image=127.0.0.1:1/none --wait=false", "kctl get pod bad", "ErrImagePull", "kctl delete pod bad --grace-period=1"},
	{"kctl cordon node-1; kctl run waits --image=kctl.local/demo --wait=false", "kctl get pod waits", "Pending",
		"kctl explain-schedule pod/waits | grep node-1; kctl delete pod waits; kctl uncordon node-1"},
}

var (
	zeros = strings.Repeat("0", 64)
	// A machine that has joined is told to join again, with an unknown token.
	unknownToken = "$(kctl token create --print-join-command | sed 's/--token [^ ]*/--token abcdef.0123456789abcdef/') --dir=/root/other"
)

// shoots causes each symptom, and checks that the command reports it in words
// that are on the page, too.
func (p *pages) shoots(m *machine) {
	m.types("/root", p.troubleshooting, "Troubleshooting", 1)
	text := read(m.t, filepath.Join(harness.Root(), "docs/troubleshooting.md"))
	for _, s := range symptoms {
		if !strings.Contains(text, s.says) {
			m.t.Errorf("docs/troubleshooting.md does not mention %q", s.says)
		}
		m.sh(s.breaks)
		harness.Eventually(m.t, patience, func() error {
			out, err := m.try("sh", "-c", s.asks)
			if !strings.Contains(out, s.says) {
				return errors.Join(err, fmt.Errorf("%s does not say %q:\n%s", s.asks, s.says, out))
			}
			return nil
		})
		m.sh(s.mends)
	}
	m.eventually("kctl", "doctor")
}
