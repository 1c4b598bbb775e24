package hosts_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/test/harness"
)

// TestJoin has two machines join the cluster that `kctl up --address` made on a
// third, by the command that it prints. The kubelets connect the nodes over
// VXLAN.
func TestJoin(t *testing.T) {
	harness.NeedLong(t, "three machines with a container runtime each")
	b := bringUp(t, 2, "--address=192.0.2.1", "--node-name=up", "--apiserver-flags="+rangesForPods)
	line := strings.Fields(b.control.kctl(t, "token", "create", "--print-join-command", "--node-network=vxlan", "--server=https://192.0.2.1:6443"))
	for _, m := range b.hosts {
		m.join(t, line[1:])
	}
	for _, m := range append([]*machine{{name: "up"}}, b.hosts...) {
		b.awaitReady(t, m.name, corev1.ConditionTrue)
	}
	b.approveServing(t)
	for _, m := range b.hosts {
		b.place(t, "on-"+m.name, m, nil)
	}
	b.place(t, "on-up", &machine{name: "up"}, nil)
	b.awaitRunning(t, "on-up")
	b.podsReachEachOther(t)
	for _, m := range b.hosts {
		if routes := m.run(t, "ip route"); !strings.Contains(routes, "dev kctl-vxlan") {
			t.Errorf("%s has the routes\n%s", m.name, routes)
		}
	}
}

// join runs the command on a machine, whose runtime and directories are not in
// systemd's places, and starts the kubelet with the command that is printed.
func (m *machine) join(t *testing.T, line []string) {
	t.Helper()
	network := filepath.Join(m.dir, "cni", "net.d")
	m.run(t, "rm "+filepath.Join(network, "10-kctl.conflist")) // made by `kctl up`
	args := append(line, "--dir", filepath.Join(m.dir, "log", "etc"), "--start=none", "--node-name", m.name, "--node-ip", m.address+","+m.addressSix(),
		"--root-dir", filepath.Join(m.dir, "kubelet"), "--cri-socket", "unix://"+filepath.Join(m.dir, "run", "containerd.sock"),
		"--ignore-preflight-errors=ip-forward,disk,pod-network")
	out, err := m.command(t.Context(), m.bin+"/kctl", args...).CombinedOutput()
	_, printed, _ := strings.Cut(string(out), "Start it by\n\n")
	command := strings.Fields(printed)
	if err != nil || len(command) == 0 {
		t.Fatalf("%s: kctl join: %v\n%s", m.name, err, out)
	}
	m.args = append(command[1:], "--cgroup-root="+harness.CgroupRoot(m.dir), "--pod-logs-dir="+filepath.Join(m.dir, "log", "pods"), "--cni-conf-dir="+network,
		"--eviction-hard=memory.available<100Mi", "--image-gc-high-threshold=100")
	m.startKubelet(t)
}

// approveServing approves the serving certificates that the kubelets asked for,
// and waits until they use them.
func (b *bed) approveServing(t *testing.T) {
	t.Helper()
	const names = `jsonpath={range .items[?(@.spec.signerName=="kubernetes.io/kubelet-serving")]}{.metadata.name} {end}`
	harness.Eventually(t, patience, func() error {
		requests := strings.Fields(b.control.kctl(t, "get", "csr", "-o", names))
		if len(requests) < len(b.hosts) {
			return fmt.Errorf("the requests are %v", requests)
		}
		for _, request := range requests {
			b.control.kctl(t, "certificate", "approve", request)
		}
		return nil
	})
	for _, m := range b.hosts {
		harness.Eventually(t, patience, func() error {
			_, err := b.control.tryKctl(t, "get", "--raw", "/api/v1/nodes/"+m.name+"/proxy/healthz")
			return err
		})
	}
}
