package hosts_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

// TestHosts uses one cluster of three hosts. Its subtests build on each other.
func TestHosts(t *testing.T) {
	b := start(t, 3)
	for _, m := range b.hosts {
		b.place(t, "on-"+m.name, m, func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8088}}
		})
	}
	t.Run("each node has ranges of its own", b.rangesOfNodes)
	t.Run("pods reach each other over routes", b.podsReachEachOther)
	t.Run("host ports and the way out", b.hostPortsAndOut)
	t.Run("pods reach each other over VXLAN", b.overVXLAN)
	t.Run("a second kubelet of the same name", b.secondOfAName)
	t.Run("a node is cut off and comes back", b.cutOff)
}

func (b *bed) rangesOfNodes(t *testing.T) {
	seen := map[string]string{}
	for _, m := range b.hosts {
		node, err := b.client.CoreV1().Nodes().Get(t.Context(), m.name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(node.Spec.PodCIDRs) != 2 {
			t.Errorf("%s has %v", m.name, node.Spec.PodCIDRs)
		}
		for _, cidr := range node.Spec.PodCIDRs {
			if seen[cidr] != "" {
				t.Errorf("%s and %s have %s", m.name, seen[cidr], cidr)
			}
			seen[cidr] = m.name
		}
	}
}

// podsReachEachOther has each pod send a request to each other one, at every
// address, and checks which source address was seen.
func (b *bed) podsReachEachOther(t *testing.T) {
	for _, m := range b.hosts {
		b.awaitRunning(t, "on-"+m.name)
	}
	for _, from := range b.hosts {
		asking := b.awaitRunning(t, "on-"+from.name)
		for _, to := range b.hosts {
			if from == to {
				continue
			}
			asked := b.awaitRunning(t, "on-"+to.name)
			if len(asked.Status.PodIPs) != 2 {
				t.Fatalf("%s has the addresses %v", asked.Name, asked.Status.PodIPs)
			}
			for i, ip := range asked.Status.PodIPs {
				if answer := b.get(t, asking.Name, ip.IP, 8080); answer != "hello from pod "+asked.Name+"\n" {
					t.Errorf("%s answers %q", asked.Name, answer)
				}
				seen := net.JoinHostPort(asking.Status.PodIPs[i].IP, "")
				if log := b.control.kctl(t, "logs", asked.Name); !strings.Contains(log, "from "+seen) {
					t.Errorf("%s was not asked from %s:\n%s", asked.Name, seen, log)
				}
			}
		}
	}
}

func (b *bed) hostPortsAndOut(t *testing.T) {
	to := b.hosts[0]
	if answer := b.get(t, "on-host-2", to.address, 8088); answer != "hello from pod on-host-1\n" {
		t.Errorf("the host port answers %q", answer)
	}
	// Outside the pod network, a pod's address is its node's.
	listener := b.control.listen(t, "192.0.2.1:0")
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		_, _ = io.WriteString(w, host)
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(listener) }()
	defer func() { _ = server.Close(); <-served }()
	if seen := b.get(t, "on-host-2", "192.0.2.1", listener.Addr().(*net.TCPAddr).Port); seen != b.hosts[1].address {
		t.Errorf("a pod on %s is seen as %s", b.hosts[1].address, seen)
	}
}

// overVXLAN changes all kubelets to another node network. The pods stay.
func (b *bed) overVXLAN(t *testing.T) {
	for _, m := range b.hosts {
		m.stopKubelet(syscall.SIGTERM)
		m.startKubelet(t, "--node-network=vxlan")
	}
	for _, m := range b.hosts {
		harness.Eventually(t, patience, func() error {
			if routes := m.run(t, "ip route"); strings.Count(routes, "dev kctl-vxlan") != len(b.hosts)-1 {
				return fmt.Errorf("%s has the routes\n%s", m.name, routes)
			}
			return nil
		})
	}
	b.podsReachEachOther(t)
}

// secondOfAName starts a kubelet on another machine under the name of an
// existing node.
func (b *bed) secondOfAName(t *testing.T) {
	first, second := b.hosts[0], b.hosts[2]
	args := second.args
	defer func() {
		second.stopKubelet(syscall.SIGTERM)
		second.args = args
		second.startKubelet(t, "--node-network=vxlan")
		b.awaitReady(t, second.name, corev1.ConditionTrue)
	}()
	// With a certificate of its own, it is another node to the API server.
	second.stopKubelet(syscall.SIGTERM)
	second.startKubelet(t, "--hostname-override="+first.name)
	harness.Eventually(t, patience, func() error {
		log := second.log(t, "kubelet")
		if !strings.Contains(log, `node \"host-3\"`) || !strings.Contains(log, `"host-1\"`) {
			return fmt.Errorf("the kubelet does not say that it may not be %s", first.name)
		}
		return nil
	})
	b.awaitReady(t, first.name, corev1.ConditionTrue)
	// Nor does it give its pods addresses of the other's range.
	harness.Eventually(t, patience, func() error {
		if log := second.log(t, "kubelet"); !strings.Contains(log, "does another machine have the same node name") {
			return errors.New("the kubelet does not see whose addresses these are")
		}
		return nil
	})
	if routes := second.run(t, "ip route"); !strings.Contains(routes, "dev kctl-vxlan") {
		t.Errorf("the network of %s was changed:\n%s", second.name, routes)
	}
}

// cutOff pulls a host's cable: its node is lost and its pods are evicted. When
// the cable is back, they end, and the node is as before.
func (b *bed) cutOff(t *testing.T) {
	away, short := b.hosts[1], int64(1)
	bears := func(p *corev1.Pod) {
		for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &short,
			})
		}
	}
	b.place(t, "evicted", away, bears)
	b.awaitRunning(t, "evicted")
	b.control.run(t, "ip link set "+away.name+" down")
	node := b.awaitReady(t, away.name, corev1.ConditionUnknown)
	harness.Eventually(t, patience, func() error {
		pod, err := b.client.CoreV1().Pods("default").Get(t.Context(), "evicted", metav1.GetOptions{})
		if err == nil && pod.DeletionTimestamp == nil {
			err = fmt.Errorf("the pod is not asked to go; %s has the taints %v", node.Name, node.Spec.Taints)
		}
		return err
	})
	// Nobody can know whether it has ended, so its object stays. The other pod
	// tolerates the taint for longer, and is not evicted.
	stays, err := b.client.CoreV1().Pods("default").Get(t.Context(), "on-host-2", metav1.GetOptions{})
	if err != nil || stays.DeletionTimestamp != nil {
		t.Errorf("the pod that tolerates the taint is evicted, too: %v %v", stays.DeletionTimestamp, err)
	}
	if running := harness.RunningContainers(t, away.dir); running["evicted"] != 1 {
		t.Errorf("cut off, the host runs %v", running)
	}
	b.control.run(t, "ip link set "+away.name+" up")
	b.awaitGone(t, "evicted")
	b.awaitReady(t, away.name, corev1.ConditionTrue)
	harness.Eventually(t, patience, func() error {
		node := b.awaitReady(t, away.name, corev1.ConditionTrue)
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("taints stay: %v", node.Spec.Taints)
		}
		running := harness.RunningContainers(t, away.dir)
		if running["evicted"] != 0 || running["on-host-2"] != 1 {
			return fmt.Errorf("the host runs %v", running)
		}
		return nil
	})
	// The same container still runs, and is reachable again.
	again := b.awaitRunning(t, "on-host-2")
	if again.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Error("the pod that stayed was restarted")
	}
	b.get(t, "on-host-1", again.Status.PodIP, 8080)
}
