package install_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kctl/test/harness"
)

// threeMachines are the machines of docs/install.md, on one switch.
type threeMachines struct {
	t     *testing.T
	names []string
	all   map[string]*machine
	wire  *exec.Cmd // its process holds the switch's network namespace
	tools string    // a folder with an ssh and an scp that reach the machines
}

// TestThreeMachines types what docs/install.md says for three machines that are
// both control plane and nodes, and then cuts the power of one after another.
func TestThreeMachines(t *testing.T) {
	harness.NeedLong(t, "it makes and boots three Debians")
	harness.NeedRoot(t)
	need(t, "debootstrap", "unshare", "nsenter", "make")
	page := harness.OpenPage(t, "docs/install.md")
	builds(t, "make packages")
	b := &threeMachines{t: t, names: []string{"cp1", "cp2", "cp3"}, all: map[string]*machine{}, tools: t.TempDir()}
	b.connect()
	first := debian(t)
	for i, name := range b.names {
		root := first
		if i > 0 {
			root = directory(t)
			run(t, "cp", "-a", first+"/.", root)
		}
		b.all[name] = &machine{root: root}
	}
	spare := directory(t)
	run(t, "cp", "-a", first+"/.", spare)
	images := archives(t)
	for _, name := range b.names {
		b.bootNew(name, images)
	}
	script := page.Take(t, "Three machines, any one of which may be lost")
	// The nodes must not care how full the disk is: it is the host's.
	script += `for i in $machines; do ssh root@${i%=*} "echo 'KUBELET_FLAGS=--image-gc-high-threshold=100 --eviction-hard=memory.available<50Mi' >>/etc/default/kctl-kubelet"; done` + "\n"
	for range 3 {
		script += page.Take(t, "Three machines, any one of which may be lost")
	}
	b.types(script)
	b.all["cp1"].eventually("sh", "-c", endpoints+" | grep -qx '192.0.2.11 192.0.2.12 192.0.2.13'")

	for i, lost := range b.names {
		b.lose(lost, b.names[(i+1)%3])
	}
	b.replace("cp2", spare, images, named+page.Take(t, "One that is lost for good"))
}

// named are the shell variables that the operator has set in the page's first
// steps.
const named = `names=cp1,cp2,cp3,192.0.2.11,192.0.2.12,192.0.2.13
authorities="pki/ca.crt pki/ca.key pki/front-proxy-ca.crt pki/front-proxy-ca.key pki/etcd/ca.crt pki/etcd/ca.key pki/sa.key pki/sa.pub"
`

// bootNew boots a new machine, and gives it a container runtime with images.
func (b *threeMachines) bootNew(name, images string) {
	b.t.Helper()
	b.boot(name)
	m := b.all[name]
	m.copy("/opt/images", filepath.Join(images, "pause.tar"), filepath.Join(images, "demo.tar"))
	runtime(b.t, m)
	m.do("rm", "/etc/cni/net.d/10-pods.conflist")
}

// replace removes a machine for good and puts a new one in its place, as the
// page says. Then each of the three may be lost again.
func (b *threeMachines) replace(lost, root, images, script string) {
	b.t.Helper()
	b.cut(lost)
	b.all[lost].root = root
	b.bootNew(lost, images)
	// The node must not care how full the disk is: it is the host's. dpkg must
	// keep the file with that setting.
	b.all[lost].sh(`echo 'Dpkg::Options {"--force-confold";};' >/etc/apt/apt.conf.d/90keep
echo 'KUBELET_FLAGS=--image-gc-high-threshold=100 --eviction-hard=memory.available<50Mi' >/etc/default/kctl-kubelet`)
	b.types(script)
	for _, unit := range []string{"kctl-etcd", "kctl-apiserver", "kctl-scheduler", "kctl-kubelet", "kctl-balancer"} {
		b.all[lost].becomes(unit, "ActiveState", "active")
	}
	b.lose("cp3", lost)
}

// cut halts a machine at once. Its cable is deleted here, because the kernel
// removes network namespaces late and the name is needed again.
func (b *threeMachines) cut(name string) {
	b.t.Helper()
	b.all[name].halt()
	run(b.t, "nsenter", "-t", strconv.Itoa(b.wire.Process.Pid), "-n", "--", "sh", "-c", "ip link delete "+name+"; ! ip link show "+name)
}

// endpoints prints where pods find API servers.
const endpoints = "kctl get endpoints kubernetes -o 'jsonpath={.subsets[*].addresses[*].ip}'"

// connect makes the switch, and the tools with which the operator reaches the
// machines.
func (b *threeMachines) connect() {
	b.t.Helper()
	b.wire = exec.Command("unshare", "--net", "sleep", "infinity")
	if err := b.wire.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = b.wire.Process.Kill()
		_ = b.wire.Wait()
	})
	harness.Eventually(b.t, patience, func() error { // until it is in a namespace of its own
		own, err := os.Readlink("/proc/self/ns/net")
		if err != nil {
			return err
		}
		its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", b.wire.Process.Pid))
		if err == nil && its == own {
			err = fmt.Errorf("no namespace yet: %s", its)
		}
		return err
	})
	b.onWire("ip link add switch type bridge")
	b.onWire("ip link set switch up")
	const head = "#!/bin/sh\nset -e\n"
	for name, text := range map[string]string{
		"ssh": head + `host=${1#root@}; shift; read -r pid root <` + b.tools + `/$host
exec nsenter -t $pid -m -u -i -n -p -C -- env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -c "cd /root; $*"` + "\n",
		"scp": head + `for last; do :; done; host=${last#root@}; read -r pid root <` + b.tools + `/${host%:}
while [ $# -gt 1 ]; do cp "$1" $root/root/; shift; done` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(b.tools, name), []byte(text), 0o755); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *threeMachines) onWire(command string) {
	b.t.Helper()
	run(b.t, "nsenter", append([]string{"-t", strconv.Itoa(b.wire.Process.Pid), "-n", "--"}, strings.Fields(command)...)...)
}

// boot boots a machine, connects it to the switch, and makes it reachable for
// the tools.
func (b *threeMachines) boot(name string) {
	b.t.Helper()
	m := bootAs(b.t, b.all[name].root, "192.0.2.1"+strings.TrimPrefix(name, "cp"), name, func(m *machine) {
		run(b.t, "nsenter", "-t", strconv.Itoa(m.init), "-n", "--", "ip", "link", "set", "switch", "name", name, "netns", strconv.Itoa(b.wire.Process.Pid))
		b.onWire("ip link set " + name + " master switch up")
	})
	b.all[name] = m
	if err := os.WriteFile(filepath.Join(b.tools, name), fmt.Appendf(nil, "%d %s\n", m.init, m.root), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// types runs lines on the operator's machine.
func (b *threeMachines) types(script string) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = harness.Root(), append(os.Environ(), "PATH="+b.tools+":"+os.Getenv("PATH"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		b.t.Fatalf("%v\n%s\n%s", err, script, &out)
	}
}

// lose cuts a machine's power. Everything written is still there, more can be
// written, and pods run on the others; then the machine comes back.
func (b *threeMachines) lose(lost, asked string) {
	b.t.Helper()
	b.t.Logf("%s is lost, and %s is asked", lost, asked)
	m := b.all[asked]
	m.do("kctl", "create", "configmap", "before-"+lost+"-by-"+asked)
	b.cut(lost)
	m.eventually("sh", "-c", "kctl get configmap without-"+lost+"-by-"+asked+" || kctl create configmap without-"+lost+"-by-"+asked)
	m.do("kctl", "get", "configmap", "before-"+lost+"-by-"+asked)
	for _, name := range b.names {
		if name == lost {
			continue
		}
		pod := "on-" + name + "-without-" + lost + "-by-" + asked
		m.eventually("sh", "-c", "kctl get pod "+pod+" || kctl run "+pod+
			` --image=kctl.local/demo --image-pull-policy=Never --wait=false --overrides='{"spec": {"nodeSelector": {"kubernetes.io/hostname": "`+name+`"}}}'`)
		m.eventually("kctl", "wait", "pod/"+pod, "--for=condition=Ready", "--timeout=60s")
	}
	if lost == b.names[0] { // once is enough: it takes a while
		m.eventually("kctl", "wait", "node/"+lost, "--for=condition=Ready=Unknown", "--timeout=60s")
	}
	b.boot(lost)
	m.eventually("kctl", "wait", "node/"+lost, "--for=condition=Ready", "--timeout=60s")
	for _, unit := range []string{"kctl-etcd", "kctl-apiserver", "kctl-scheduler", "kctl-kubelet", "kctl-balancer"} {
		b.all[lost].becomes(unit, "ActiveState", "active")
	}
}
