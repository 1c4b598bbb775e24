package compose_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kctl/test/harness"
)

// A cable connects the engine's network with the node outside it.
const (
	engineAddress = "198.51.100.1"
	nodeAddress   = "198.51.100.2"
)

// TestNodeFromOutside has a node join through the balancer, kills every
// container of the control plane, one after another, and upgrades to a new
// release, one program at a time. The node's pods run on all the while. This is
// with Compose v2.
func TestNodeFromOutside(t *testing.T) {
	harness.NeedLong(t, startsDocker)
	c := harness.Start(t, harness.Options{Without: []string{"apiserver", "scheduler", "kubelet"}})
	plugins := filepath.Join(t.TempDir(), "cli-plugins")
	if err := os.Mkdir(plugins, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(harness.Compose.Build(t), filepath.Join(plugins, "docker-compose")); err != nil {
		t.Fatal(err)
	}
	e := startControlPlane(t, []string{"docker", "compose"}, (*engine).loaded, "DOCKER_CONFIG="+filepath.Dir(plugins), "KCTL_HOST="+engineAddress,
		"KCTL_BIND=0.0.0.0")
	e.cable(t)
	admin := filepath.Join(c.Dir, "log", "outside.kubeconfig")
	if err := os.WriteFile(admin, []byte(e.admin(engineAddress)), 0o600); err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, c: c, admin: admin}
	n.join(filepath.Join(c.Dir, "log", "node"))
	n.kctl("run", "stays", "--image="+harness.Demo)
	was := n.container()

	w := startWriter(t, e.clientset(t, e.admin("127.0.0.1")))
	for _, service := range services {
		t.Run(service+" is lost", func(t *testing.T) {
			n := n.in(t)
			if service == "balancer" { // without it there is no way to the API; only that it comes back is promised
				e.dies(t, service)
			} else {
				e.compose("kill", service)
			}
			w.more(t)
			n.works("without-" + service)
			e.compose("up", "-d")
			e.allHealthy()
			n.same(was)
		})
	}
	t.Run("upgrade", func(t *testing.T) {
		n := n.in(t)
		release := newRelease(t)
		e.load(release, images...)
		for _, service := range services {
			before := e.image(service)
			e.compose("up", "-d", "--no-deps", service)
			e.allHealthy()
			if after := e.image(service); after == before {
				t.Errorf("%s still runs image %s", service, before)
			}
			w.more(t)
			n.same(was)
		}
		n.works("upgraded")
	})
	w.check(t)
}

// image is the image of a service's container.
func (e *engine) image(service string) string {
	e.t.Helper()
	id, err := e.inspect(service, "{{.Image}}")
	if err != nil {
		e.t.Fatal(err)
	}
	return id
}

// newRelease makes images that differ from the running ones, of programs that
// do the same: a byte is appended to each.
func newRelease(t *testing.T) (dir string) {
	t.Helper()
	bin, dir := t.TempDir(), t.TempDir()
	entries, err := os.ReadDir(harness.Bin(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() { // folders that `make runtime` and `make upstream` made
			continue
		}
		program, err := os.ReadFile(filepath.Join(harness.Bin(t), entry.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(bin, entry.Name()), append(program, '\n'), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	kctl := exec.CommandContext(t.Context(), filepath.Join(harness.Bin(t), "kctl"), "images", "--bin-dir", bin, "--dir", dir)
	if out, err := kctl.CombinedOutput(); err != nil {
		t.Fatalf("kctl images: %v\n%s", err, out)
	}
	return dir
}

// cable connects this machine to the engine's network. It disappears with that
// network.
func (e *engine) cable(t *testing.T) {
	t.Helper()
	link := "to-" + filepath.Base(e.dir)[len("kctl-"):]
	link = link[:min(len(link), 15)]
	e.must("ip", "link", "add", link, "type", "veth", "peer", "name", "outside", "netns", filepath.Base(e.dir))
	t.Cleanup(func() { e.must("ip", "link", "del", link) })
	e.must("ip", "addr", "add", nodeAddress+"/30", "dev", link)
	e.must("ip", "link", "set", link, "up")
	e.must("nsenter", "--net="+e.namespace, "ip", "addr", "add", engineAddress+"/30", "dev", "outside")
	e.must("nsenter", "--net="+e.namespace, "ip", "link", "set", "outside", "up")
}

// node is a machine with containerd that joins the cluster.
type node struct {
	t     *testing.T
	c     *harness.Cluster // its containerd
	admin string           // kubeconfig
}

// in is the node for a subtest: failures are those of t.
func (n *node) in(t *testing.T) *node { return &node{t: t, c: n.c.In(t), admin: n.admin} }

func (n *node) kctl(args ...string) string {
	n.t.Helper()
	return n.c.Kctl(append([]string{"--kubeconfig", n.admin}, args...)...)
}

// join does what docs/joining.md says, and starts the kubelet with the command
// that is printed.
func (n *node) join(dir string) {
	n.t.Helper()
	line := strings.Fields(n.kctl("token", "create", "--print-join-command"))
	out := n.c.Kctl(append(line[1:], "--dir", dir, "--start=none", "--node-name", n.c.Node, "--node-ip="+nodeAddress,
		"--root-dir", filepath.Join(n.c.Dir, "kubelet"), "--cri-socket", "unix://"+filepath.Join(n.c.Dir, "run", "containerd.sock"),
		"--kubelet-port", strconv.Itoa(harness.FreePort(n.t)), "--ignore-preflight-errors=ip-forward,disk")...)
	_, command, _ := strings.Cut(out, "Start it by\n\n")
	words := strings.Fields(command)
	if len(words) == 0 {
		n.t.Fatalf("join printed %s", out)
	}
	var log bytes.Buffer
	kubelet := exec.Command(n.c.Bin("kubelet"), append(words[1:], "--cgroup-root="+harness.CgroupRoot(n.c.Dir),
		"--pod-logs-dir="+filepath.Join(n.c.Dir, "log", "pods"),
		"--healthz-port=0", "--make-iptables-util-chains=false", "--eviction-hard=memory.available<100Mi", "--image-gc-high-threshold=100")...)
	kubelet.Stdout, kubelet.Stderr = &log, &log
	if err := kubelet.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = kubelet.Process.Signal(syscall.SIGTERM)
		_ = kubelet.Wait()
		if n.t.Failed() {
			n.t.Logf("--- the end of the kubelet's log\n%s", log.Bytes()[max(0, log.Len()-3000):])
		}
	})
	n.eventually("wait", "--for=condition=Ready", "node/"+n.c.Node, "--timeout=60s")
	requests := n.kctl("get", "csr", "-o", `jsonpath={range .items[?(@.spec.signerName=="kubernetes.io/kubelet-serving")]}{.metadata.name} {end}`)
	for request := range strings.FieldsSeq(requests) {
		n.kctl("certificate", "approve", request)
	}
}

// eventually runs kctl until it succeeds: connections break when their server
// ends.
func (n *node) eventually(args ...string) (out string) {
	n.t.Helper()
	harness.Eventually(n.t, 3*time.Minute, func() error {
		r := n.c.Run("", n.c.Bin("kctl"), append([]string{"--kubeconfig", n.admin}, args...)...)
		if r.Code != 0 {
			return fmt.Errorf("kctl %s: %s%s", strings.Join(args, " "), r.Stdout, r.Stderr)
		}
		out = r.Stdout
		return nil
	})
	return out
}

// works runs a pod, and gets its log from the kubelet through the control
// plane.
func (n *node) works(name string) {
	n.t.Helper()
	n.eventually("apply", "-f", n.manifest(name))
	n.eventually("wait", "--for=condition=Ready", "pod/"+name, "--timeout=90s")
	n.eventually("logs", name)
	n.eventually("delete", "pod", name, "--ignore-not-found", "--timeout=90s")
}

// manifest is the file of a pod: unlike a create, its apply can be repeated.
func (n *node) manifest(name string) string {
	n.t.Helper()
	file := filepath.Join(n.t.TempDir(), "pod.yaml")
	text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: demo, image: %s}]}\n",
		name, harness.Demo)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	return file
}

func (n *node) container() string {
	n.t.Helper()
	return n.eventually("get", "pod", "stays", "-o",
		"jsonpath={.status.phase} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}")
}

func (n *node) same(was string) {
	n.t.Helper()
	if now := n.container(); now != was {
		n.t.Errorf("the pod was %s and is %s", was, now)
	}
}
