package install_test

import (
	"os"
	"strings"

	"kctl/test/harness"
)

// leaves takes the machine out of its cluster while a pod runs on it, and has
// it join again, this time with a network made by the kubelets.
func leaves(m *machine) {
	if out, err := m.try("kctl", "reset"); err == nil || !strings.Contains(out, "--yes") {
		m.t.Errorf("reset without a word: %v\n%s", err, out)
	}
	m.resets()
	settings := read(m.t, m.path("/etc/default/kctl-apiserver")) + "POD_NETWORK_FLAGS=--allocate-node-cidrs --cluster-cidr=10.244.0.0/16\n"
	if err := os.WriteFile(m.path("/etc/default/kctl-apiserver"), []byte(settings), 0o644); err != nil {
		m.t.Fatal(err)
	}
	m.do("systemctl", "restart", "kctl-apiserver")
	m.do("rm", "/etc/cni/net.d/10-pods.conflist")
	m.joinsWithNetwork()
	m.resets()
	m.hasNoNetwork()
	m.joinsWithNetwork()
}

// hasNoNetwork checks that nothing is left of what a kubelet made for
// --node-network.
func (m *machine) hasNoNetwork() {
	m.t.Helper()
	for what, looks := range map[string]string{
		"link": "ip link show kctl-pods", "chain": "iptables -t nat -S KCTL-POD-MASQ", "jump": "iptables -t filter -S FORWARD | grep KCTL",
		"guard": "iptables -t mangle -S | grep KCTL", "route": "ip route show proto 107 | grep .",
		"configuration": "ls /etc/cni/net.d/10-kctl.conflist", "list of addresses": "ls /var/lib/cni/networks/kctl-node-network",
	} {
		if out, err := m.try("sh", "-c", looks); err == nil {
			m.t.Errorf("the network's %s is still there:\n%s", what, out)
		}
	}
}

// resets checks that nothing is left of the node after a reset, least of all
// its running pods.
func (m *machine) resets() {
	m.t.Helper()
	m.do("kctl", "wait", "pod/web", "--for=condition=Ready", "--timeout=120s")
	m.do("kctl", "reset", "--yes")
	left := m.sh(`ctr -n k8s.io tasks list -q; ctr -n k8s.io containers list -q
		ls -d /var/lib/kubelet /etc/kctl/kubelet.* /etc/kctl/bootstrap-kubelet.kubeconfig 2>/dev/null || :
		find /sys/fs/cgroup -name 'kubepods*'
		systemctl list-units --all --plain --no-legend --no-pager 'kubepods*' 'cri-containerd-*'
		grep /var/lib/kubelet /proc/self/mounts || :
		grep -lx demo /proc/[0-9]*/comm || :`)
	if left != "" {
		m.t.Errorf("left behind:\n%s", left)
	}
	if state := m.show("kctl-kubelet", "ActiveState") + ", " + m.show("kctl-kubelet", "UnitFileState"); state != "inactive, disabled" {
		m.t.Errorf("the kubelet is %s", state)
	}
	m.sh("test -e /etc/kctl/pki/ca.crt && kctl get --raw /readyz") // the control plane on this machine does not belong to the node
	m.do("kctl", "delete", "node", "node-1")
	m.do("kctl", "delete", "pod", "web", "--force", "--grace-period=0", "--ignore-not-found")
}

func (m *machine) joinsWithNetwork() {
	m.t.Helper()
	m.sh(strings.TrimSpace(m.do("kctl", "token", "create", "--print-join-command", "--node-network=routes")) + " --start=systemd")
	harness.Eventually(m.t, patience, func() error { // the unit is active before the node has registered
		_, err := m.try("kctl", "get", "node", "node-1")
		return err
	})
	m.do("kctl", "wait", "node/node-1", "--for=condition=Ready", "--timeout=120s")
	m.do("kctl", "run", "web", "--image=kctl.local/demo", "--image-pull-policy=Never", "--port=8080")
	m.do("kctl", "wait", "pod/web", "--for=condition=Ready", "--timeout=120s")
	address := m.do("kctl", "get", "pod", "web", "-o", "jsonpath={.status.podIP}")
	if !strings.HasPrefix(address, "10.244.") {
		m.t.Errorf("the pod's address is %s", address)
	}
	if chain, err := m.try("iptables", "-t", "nat", "-S", "KCTL-POD-MASQ"); err != nil {
		m.t.Errorf("%v\n%s", err, chain)
	}
	if command := m.sh("tr '\\0' ' ' </proc/$(systemctl show --value -p MainPID kctl-kubelet)/cmdline"); !strings.Contains(command, "--node-network=routes") ||
		!strings.Contains(command, "--eviction-hard") {
		m.t.Errorf("of the flags of kctl join and of /etc/default some are not taken: %s", command)
	}
}
