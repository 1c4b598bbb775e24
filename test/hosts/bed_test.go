package hosts_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"kctl/proto/core"
	"kctl/proto/pki"
	"kctl/test/harness"
)

// patience bounds every wait; only a failing test takes as long.
const patience = 3 * time.Minute

// lostAfter is after how long the control plane gives up a silent node here.
const lostAfter = 10 * time.Second

// bed is a cluster of several hosts, with the control plane on the switch that
// connects them.
type bed struct {
	control *machine
	hosts   []*machine
	client  *kubernetes.Clientset
}

// rangesForPods are flags for the API server.
const rangesForPods = "--allocate-node-cidrs --cluster-cidr=10.244.0.0/16,fd00:10:244::/48"

// start brings up a control plane and hosts whose nodes are Ready.
func start(t *testing.T, count int, kubeletFlags ...string) *bed {
	t.Helper()
	b := bringUp(t, count, "--without=registry,containerd,kubelet", "--apiserver-flags=--bind-address=0.0.0.0 --node-monitor-grace-period="+lostAfter.String()+" "+
		rangesForPods)
	b.control.shell(t, harness.OpenPage(t, "docs/networking.md").Take(t, "Three nodes, no other software"))
	for _, m := range b.hosts {
		b.enroll(t, m)
		m.args = append(m.args, kubeletFlags...)
		m.startKubelet(t)
	}
	for _, m := range b.hosts {
		b.awaitReady(t, m.name, corev1.ConditionTrue)
	}
	return b
}

// bringUp makes the machines: one with a control plane, made by `kctl up` with
// these arguments, and hosts with a container runtime.
func bringUp(t *testing.T, count int, controlPlane ...string) *bed {
	t.Helper()
	harness.NeedRoot(t)
	b := &bed{control: newMachine(t, "control", "192.0.2.1")}
	b.control.run(t, "ip link add switch type bridge")
	b.control.run(t, "ip addr add 192.0.2.1/24 dev switch")
	b.control.run(t, "ip link set switch up")
	for i := range count {
		b.hosts = append(b.hosts, b.newHost(t, i+1))
	}
	var all sync.WaitGroup
	errs := make([]error, count+1)
	up := func(i int, m *machine, args ...string) {
		all.Go(func() {
			out, err := m.command(t.Context(), m.bin+"/kctl", append([]string{"up", "--dir", m.dir}, args...)...).CombinedOutput()
			if err != nil {
				errs[i] = fmt.Errorf("%s: kctl up: %w\n%s", m.name, err, out)
			}
		})
	}
	up(count, b.control, append([]string{"--port=6443"}, controlPlane...)...)
	for i, m := range b.hosts {
		up(i, m, "--node-name="+m.name, "--without=apiserver,scheduler,kubelet")
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	b.connect(t)
	return b
}

// newHost makes a machine with a cable to the switch.
func (b *bed) newHost(t *testing.T, n int) *machine {
	t.Helper()
	m := newMachine(t, fmt.Sprintf("host-%d", n), fmt.Sprintf("192.0.2.%d", 10+n))
	b.control.run(t, fmt.Sprintf("ip link add %s type veth peer name uplink netns %d", m.name, m.holder.Process.Pid))
	b.control.run(t, fmt.Sprintf("ip link set %s master switch up", m.name))
	m.run(t, "ip addr add "+m.address+"/24 dev uplink")
	m.run(t, "ip addr add "+m.addressSix()+"/64 dev uplink nodad")
	m.run(t, "ip link set uplink up")
	m.run(t, "ip route add default via 192.0.2.1")
	return m
}

// addressSix is the host's IPv6 address.
func (m *machine) addressSix() string {
	return strings.Replace(m.address, "192.0.2.", "fd00:192:2::", 1)
}

// connect makes the tests' client, which connects from the switch.
func (b *bed) connect(t *testing.T) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(b.control.dir, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Dial = -1, b.control.dial
	if b.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
}

// enroll gives a host what its kubelet needs, and removes the network that
// `kctl up` would give it.
func (b *bed) enroll(t *testing.T, m *machine) {
	t.Helper()
	dir := m.dir
	ca, err := pki.Load(filepath.Join(b.control.dir, "pki", "ca.crt"), filepath.Join(b.control.dir, "pki", "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	node := core.UserNodePrefix + m.name
	for file, subject := range map[string]pki.Subject{
		"node":    {CommonName: node, Organization: []string{core.GroupNodes}, Client: true},
		"serving": {CommonName: node, Organization: []string{core.GroupNodes}, Server: true, IPs: []net.IP{net.ParseIP(m.address)}},
	} {
		pair, err := ca.Issue(subject, time.Now(), time.Hour)
		if err == nil {
			err = pair.Save(filepath.Join(dir, file+".crt"), filepath.Join(dir, file+".key"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	authority := filepath.Join(b.control.dir, "pki", "ca.crt")
	kubeconfig := "apiVersion: v1\nkind: Config\ncurrent-context: x\n" +
		"clusters: [{name: x, cluster: {server: 'https://192.0.2.1:6443', tls-server-name: localhost, certificate-authority: " + authority + "}}]\n" +
		"users: [{name: x, user: {client-certificate: " + dir + "/node.crt, client-key: " + dir +
		"/node.key}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n"
	network := filepath.Join(dir, "cni", "net.d")
	err = errors.Join(os.WriteFile(filepath.Join(dir, "node.kubeconfig"), []byte(kubeconfig), 0o600), os.Remove(filepath.Join(network, "10-kctl.conflist")))
	if err != nil {
		t.Fatal(err)
	}
	m.args = []string{
		"--kubeconfig=" + dir + "/node.kubeconfig", "--hostname-override=" + m.name, "--node-ip=" + m.address + "," + m.addressSix(), "--address=" + m.address,
		"--root-dir=" + dir + "/kubelet", "--cert-dir=" + dir + "/kubelet/pki", "--pod-logs-dir=" + dir + "/log/pods",
		"--container-runtime-endpoint=unix://" + dir + "/run/containerd.sock", "--cgroup-root=" + harness.CgroupRoot(dir),
		"--tls-cert-file=" + dir + "/serving.crt", "--tls-private-key-file=" + dir + "/serving.key", "--client-ca-file=" + authority,
		"--eviction-hard=memory.available<100Mi", "--image-gc-high-threshold=100",
		"--node-lease-duration-seconds=4", "--node-status-update-frequency=2s",
		"--node-network=routes", "--cni-conf-dir=" + network,
	}
}

// kctl runs kctl on the switch as the cluster's admin; it must succeed.
func (m *machine) kctl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := m.tryKctl(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// shell runs lines of the documentation on the switch, in a clone of the
// repository, as the cluster's admin; they must succeed.
func (m *machine) shell(t *testing.T, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := m.command(ctx, "bash", "-euo", "pipefail", "-c", "cd "+harness.Root()+"\n"+script) // entering a mount namespace changes to its root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+m.dir+"/admin.kubeconfig", "HOME="+m.dir, "PATH="+m.bin+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
}

func (m *machine) tryKctl(t *testing.T, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := m.command(ctx, m.bin+"/kctl", args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+m.dir+"/admin.kubeconfig", "HOME="+m.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kctl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// awaitReady waits until a node's Ready condition has the status, and returns
// the node.
func (b *bed) awaitReady(t *testing.T, name string, want corev1.ConditionStatus) (node *corev1.Node) {
	t.Helper()
	harness.Eventually(t, patience, func() (err error) {
		if node, err = b.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == want {
				return nil
			}
		}
		return fmt.Errorf("%s is not Ready=%s: %+v", name, want, node.Status.Conditions)
	})
	return node
}

// place creates a pod that must run on the host.
func (b *bed) place(t *testing.T, name string, on *machine, change func(*corev1.Pod)) {
	t.Helper()
	pod := harness.Pod(name, harness.Demo)
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: on.name}
	if change != nil {
		change(pod)
	}
	if _, err := b.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (b *bed) awaitRunning(t *testing.T, name string) (pod *corev1.Pod) {
	t.Helper()
	harness.Eventually(t, patience, func() (err error) {
		if pod, err = b.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{}); err == nil && !harness.Running(pod) {
			err = fmt.Errorf("%s is %s: %+v", name, pod.Status.Phase, pod.Status.Conditions)
		}
		return err
	})
	return pod
}

func (b *bed) awaitGone(t *testing.T, name string) {
	t.Helper()
	harness.Eventually(t, patience, func() error {
		_, err := b.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s is still there: %w", name, err)
	})
}

// get sends an HTTP request from within a pod, until it is answered.
func (b *bed) get(t *testing.T, from, host string, port int) string {
	t.Helper()
	var answer string
	harness.Eventually(t, patience, func() (err error) {
		answer, err = b.control.tryKctl(t, "exec", from, "--", "/demo", "get", "http://"+net.JoinHostPort(host, fmt.Sprint(port)))
		return err
	})
	return answer
}
