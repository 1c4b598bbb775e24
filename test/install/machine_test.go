package install_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kctl/test/harness"
)

// TestMachine takes a Debian machine that its own systemd has booted from
// nothing to a node with a pod, through everything that happens to machines,
// and back.
func TestMachine(t *testing.T) {
	harness.NeedLong(t, "it makes and boots a whole Debian")
	harness.NeedRoot(t)
	need(t, "debootstrap", "unshare", "nsenter")
	root := debian(t)
	first, second := packages(t, "1.0.0", "1.0.0"), packages(t, "1.0.1", "1.0.1")
	images := archives(t)

	m := boot(t, root)
	for dir, files := range map[string]map[string]string{"/opt/first": first, "/opt/second": second} {
		for _, file := range files {
			m.copy(dir, file)
		}
	}
	m.copy("/opt/images", filepath.Join(images, "pause.tar"), filepath.Join(images, "demo.tar"))
	runtime(t, m)

	// Each part builds on those before it.
	_ = t.Run("installed", m.in(installing)) &&
		t.Run("started too early", m.in(tooEarly)) &&
		t.Run("control plane", m.in(startControlPlane)) &&
		t.Run("node", m.in(joins)) &&
		t.Run("pods outlive restarts", m.in(restarts)) &&
		t.Run("killed and hung", m.in(dies)) &&
		t.Run("looked after", m.in(upkeep)) &&
		t.Run("slices of systemd", m.in(systemdSlices)) &&
		t.Run("upgraded", m.in(upgrade)) &&
		t.Run("leaves and joins", m.in(leaves))
	if t.Failed() {
		return
	}
	m.halt() // like a power cut
	m = boot(t, root)
	_ = t.Run("booted again", m.in(again)) && t.Run("purged", m.in(purge))
}

// archives are the images of the machine's pods, as files. `kctl images` makes
// those of a control plane in containers, too; nobody runs these here, so pause
// stands in for their programs.
func archives(t *testing.T) string {
	t.Helper()
	dir, bin := t.TempDir(), t.TempDir()
	for _, program := range []string{"apiserver", "scheduler", "kubelet", "kctl", "balancer", "healthcheck", "etcd", "etcdctl", "etcdutl", "pause", "demo"} {
		from := program
		if program != "demo" {
			from = "pause"
		}
		if err := os.Symlink(filepath.Join(harness.Bin(t), from), filepath.Join(bin, program)); err != nil {
			t.Fatal(err)
		}
	}
	run(t, filepath.Join(harness.Bin(t), "kctl"), "images", "--bin-dir", bin, "--dir", dir)
	return dir
}

// in runs a part of the machine's life as a subtest.
func (m *machine) in(part func(*machine)) func(*testing.T) {
	return func(t *testing.T) {
		here := *m
		here.t = t
		part(&here)
	}
}

// runtime prepares Debian's containerd for a machine without a registry, and
// for a kernel on which nobody may lower OOM scores.
func runtime(t *testing.T, m *machine) {
	t.Helper()
	config := m.path("/etc/containerd/config.toml")
	text := strings.Replace(read(t, config), "[plugins.\"io.containerd.grpc.v1.cri\"]\n",
		"[plugins.\"io.containerd.grpc.v1.cri\"]\n    restrict_oom_score_adj = true\n    sandbox_image = \"kctl.local/pause:latest\"\n", 1)
	network := `{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true,
"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.85.0.0/24"}]]}}]}`
	for path, text := range map[string]string{config: text, m.path("/etc/cni/net.d/10-pods.conflist"): network} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m.do("systemctl", "restart", "containerd")
	m.sh("for i in /opt/images/*.tar; do ctr -n k8s.io images import $i; done")
}

func installing(m *machine) {
	m.sh("dpkg -i /opt/first/*.deb")
	for _, unit := range []string{"kctl-etcd", "kctl-apiserver", "kctl-scheduler", "kctl-kubelet"} {
		if state := m.show(unit, "ActiveState") + ", " + m.show(unit, "UnitFileState"); state != "inactive, disabled" {
			m.t.Errorf("%s after the installation: %s", unit, state)
		}
	}
	if got := m.do("kctl", "version", "--client"); got == "" {
		m.t.Error("kctl says nothing")
	}
	m.do("systemctl", "restart", "containerd")
	if got := m.show("containerd", "DropInPaths"); !strings.Contains(got, "containerd.service.d/kctl.conf") {
		m.t.Errorf("the drop-in is not taken: %q", got)
	}
	m.sh("id kctl; id kctl-etcd")
	// The node must not care how full the disk is: it is the host's.
	m.sh("echo 'KUBELET_FLAGS=--image-gc-high-threshold=100 --eviction-hard=memory.available<50Mi' >/etc/default/kctl-kubelet")
}

// tooEarly starts services that have no certificates yet.
func tooEarly(m *machine) {
	for unit, says := range map[string]string{"kctl-apiserver": "kctl pki init", "kctl-scheduler": "kctl pki init", "kctl-kubelet": "kctl join"} {
		if out, err := m.try("systemctl", "start", unit); err == nil {
			m.t.Errorf("%s started:\n%s", unit, out)
		}
		if log := m.do("journalctl", "-u", unit, "-o", "cat", "--no-pager"); !strings.Contains(log, says) {
			m.t.Errorf("%s does not say %q:\n%s", unit, says, log)
		}
		m.do("systemctl", "stop", unit)
		_, _ = m.try("systemctl", "reset-failed", unit)
	}
}

func startControlPlane(m *machine) {
	m.do("systemctl", "disable", "--now", "etcd")
	m.do("kctl", "pki", "init", "--advertise-address=192.0.2.11")
	// In the wrong order: the server waits, and says what for.
	m.do("systemctl", "enable", "--now", "--no-block", "kctl-apiserver", "kctl-scheduler")
	harness.Eventually(m.t, patience, func() error {
		if status := m.show("kctl-apiserver", "StatusText"); !strings.HasPrefix(status, "waiting for etcd at https://127.0.0.1:2379: ") {
			return fmt.Errorf("status %q", status)
		}
		return nil
	})
	if state := m.show("kctl-apiserver", "ActiveState"); state != "activating" {
		m.t.Errorf("ready without etcd: %s", state)
	}
	m.do("systemctl", "enable", "--now", "kctl-etcd")
	// The scheduler's dynamic user has no name on a machine without
	// libnss-systemd.
	for unit, user := range map[string]string{"kctl-etcd": "kctl-etcd", "kctl-apiserver": "kctl", "kctl-scheduler": "UNKNOWN"} {
		m.becomes(unit, "ActiveState", "active")
		if got := strings.TrimSpace(m.sh("stat -c %U /proc/$(systemctl show --value -p MainPID " + unit + ")")); got != user {
			m.t.Errorf("%s runs as %q, want %q", unit, got, user)
		}
	}
	// Debian's etcd is there too.
	if runs := m.sh("readlink /proc/$(systemctl show --value -p MainPID kctl-etcd)/exe"); runs != "/usr/lib/kctl/etcd\n" {
		m.t.Errorf("kctl-etcd runs %s", runs)
	}
	m.do("kctl", "get", "--raw", "/readyz")
	if mode := strings.TrimSpace(m.sh("stat -c '%a %U:%G' /etc/kctl/pki/front-proxy-ca.key")); mode != "600 root:root" {
		m.t.Errorf("a key that no service needs is %s", mode)
	}
}

func joins(m *machine) {
	m.sh(m.do("kctl", "token", "create", "--print-join-command"))
	m.becomes("kctl-kubelet", "ActiveState", "active")
	harness.Eventually(m.t, patience, func() error { // the unit is active before the node has registered
		_, err := m.try("kctl", "get", "node", "node-1")
		return err
	})
	m.do("kctl", "wait", "node/node-1", "--for=condition=Ready", "--timeout=120s")
	m.do("kctl", "run", "web", "--image=kctl.local/demo", "--image-pull-policy=Never", "--port=8080")
	m.do("kctl", "wait", "pod/web", "--for=condition=Ready", "--timeout=120s")
	harness.Eventually(m.t, patience, func() error { // the kubelet has asked for its serving certificate, and waits for it
		m.sh("kctl certificate approve $(kctl get csr -o name)")
		_, err := m.try("kctl", "logs", "web")
		return err
	})
	kubelet := m.sh("readlink /proc/$(systemctl show --value -p MainPID kctl-kubelet)/ns/mnt")
	if init := m.sh("readlink /proc/1/ns/mnt"); kubelet != init {
		m.t.Error("the kubelet has a mount namespace of its own: containerd does not see the volumes that it mounts")
	}
}

// container is the pod's container, with its number of starts.
func (m *machine) container() string {
	m.t.Helper()
	return m.do("kctl", "get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}")
}

// same checks that the pod still runs in the same container.
func (m *machine) same(was string) {
	m.t.Helper()
	m.do("kctl", "wait", "node/node-1", "--for=condition=Ready", "--timeout=120s")
	m.do("kctl", "wait", "pod/web", "--for=condition=Ready", "--timeout=120s")
	if now := m.container(); now != was {
		m.t.Errorf("the container was %s and is %s", was, now)
	}
}

func restarts(m *machine) {
	was := m.container()
	for _, unit := range []string{"kctl-kubelet", "containerd", "kctl-scheduler", "kctl-apiserver", "kctl-etcd"} {
		m.do("systemctl", "restart", unit)
		m.becomes(unit, "ActiveState", "active")
		m.same(was)
	}
}

// dies kills programs, and makes one hang: systemd restarts them.
func dies(m *machine) {
	// The watchdog starts only when a program is ready.
	m.becomes("kctl-scheduler", "SubState", "running")
	m.do("systemctl", "kill", "--kill-who=main", "--signal=SIGSTOP", "kctl-scheduler")
	harness.Eventually(m.t, patience, func() error {
		if log := m.do("journalctl", "-u", "kctl-scheduler", "-o", "cat", "--no-pager"); !strings.Contains(log, "Watchdog timeout") {
			return fmt.Errorf("the watchdog does nothing:\n%s", log)
		}
		return nil
	})
	m.becomes("kctl-scheduler", "ActiveState", "active")
	was := m.container()
	for _, unit := range []string{"kctl-apiserver", "kctl-kubelet", "kctl-etcd"} {
		m.do("systemctl", "kill", "--kill-who=main", "--signal=SIGKILL", unit)
		m.becomes(unit, "NRestarts", "1")
		m.becomes(unit, "ActiveState", "active")
	}
	m.same(was)
}

func upgrade(m *machine) {
	was, etcd, server := m.container(), m.show("kctl-etcd", "MainPID"), m.show("kctl-apiserver", "MainPID")
	const settings = "APISERVER_FLAGS=--event-ttl=2h\n"
	if err := os.WriteFile(m.path("/etc/default/kctl-apiserver"), []byte(settings), 0o644); err != nil {
		m.t.Fatal(err)
	}
	m.sh("dpkg -i /opt/second/*.deb")
	harness.Eventually(m.t, patience, func() error {
		if m.show("kctl-apiserver", "MainPID") == server {
			return fmt.Errorf("the old program runs on")
		}
		return nil
	})
	m.becomes("kctl-apiserver", "ActiveState", "active")
	m.becomes("kctl-kubelet", "ActiveState", "active")
	if now := m.show("kctl-etcd", "MainPID"); now != etcd {
		m.t.Error("etcd was restarted")
	}
	if got := read(m.t, m.path("/etc/default/kctl-apiserver")); got != settings {
		m.t.Errorf("settings after the upgrade: %q", got)
	}
	if command := m.sh("tr '\\0' ' ' </proc/$(systemctl show --value -p MainPID kctl-apiserver)/cmdline"); !strings.Contains(command, "--event-ttl=2h") {
		m.t.Errorf("settings are not taken: %s", command)
	}
	m.same(was)
	// Earlier releases had no such certificate.
	m.sh("rm /etc/kctl/pki/scheduler-server.*; systemctl restart kctl-scheduler || :")
	harness.Eventually(m.t, patience, func() error {
		if log := m.do("journalctl", "-u", "kctl-scheduler", "-o", "cat", "--no-pager", "--since=-1min"); !strings.Contains(log, "kctl pki init") {
			return fmt.Errorf("the scheduler does not say what to do:\n%s", log)
		}
		return nil
	})
	m.do("kctl", "pki", "init", "--advertise-address=192.0.2.11")
	m.becomes("kctl-scheduler", "ActiveState", "active")
}

func again(m *machine) {
	for _, unit := range []string{"kctl-etcd", "kctl-apiserver", "kctl-scheduler", "kctl-kubelet"} {
		m.becomes(unit, "ActiveState", "active")
	}
	m.do("kctl", "wait", "node/node-1", "--for=condition=Ready", "--timeout=120s")
	m.do("kctl", "delete", "pod", "web", "--timeout=120s")
	m.do("kctl", "run", "web", "--image=kctl.local/demo", "--image-pull-policy=Never", "--port=8080")
	m.do("kctl", "wait", "pod/web", "--for=condition=Ready", "--timeout=120s")
}

func purge(m *machine) {
	was := m.container()
	id := strings.TrimPrefix(strings.Fields(was)[0], "containerd://")
	m.do("dpkg", "--remove", "kctl-node")
	if state := m.show("kctl-kubelet", "ActiveState"); state != "inactive" && state != "failed" {
		m.t.Errorf("the kubelet of a removed package is %s", state)
	}
	if tasks := m.sh("ctr -n k8s.io tasks list"); !strings.Contains(tasks, id) {
		m.t.Errorf("the pod went with the package:\n%s", tasks)
	}
	m.sh("test -e /etc/kctl/kubelet.yaml && test -e /etc/default/kctl-kubelet")
	m.sh("for t in $(ctr -n k8s.io tasks list -q); do ctr -n k8s.io tasks kill -s KILL $t; done")
	m.do("dpkg", "--purge", "kctl-node", "kctl-control-plane", "kctl-etcd", "kctl")
	m.sh("ls /var/backups/kctl/backup-*/snapshot.db && rm -r /var/backups/kctl") // what a mistaken purge can be mended with
	m.hasNoNetwork()
	left := strings.Fields(m.sh(`find / -xdev \( -name 'kctl*' -o -path '/var/lib/kubelet*' \) -not -path '/opt/*' -not -path '/proc/*' -not -path '/root/.kube/*'`))
	// The journal and containerd's image store have directories of their own, and
	// the network plugins keep the address of a pod that was killed.
	left = slices.DeleteFunc(left, func(path string) bool {
		return strings.HasPrefix(path, "/var/lib/containerd/") || strings.HasPrefix(path, "/var/lib/cni/")
	})
	if len(left) > 0 {
		m.t.Errorf("left behind: %q", left)
	}
	if out, err := exec.CommandContext(m.t.Context(), "grep", "-c", "^kctl", m.path("/etc/passwd")).Output(); err != nil || strings.TrimSpace(string(out)) != "2" {
		m.t.Errorf("users that stay: %q, %v", out, err)
	}
}
