package cycle

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/proto/watch"
	"kctl/scheduler/internal/fixture"
)

// TestRandomClustersKeepTheRules schedules random pods on random nodes, with
// bindings that fail at random, pods that are deleted and nodes that are added.
// Then it checks the result against the rules, each written here in the
// simplest way: no node is overcommitted, no hard rule is broken, no pod was
// bound twice, and none waits for a node on which it fits, or would fit if pods
// of lower priority were evicted.
func TestRandomClustersKeepTheRules(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			var nodes []*core.Node
			for i := range 3 + random.IntN(8) {
				nodes = append(nodes, randomNode(random, i))
			}
			withScheduler(t, nodes, func(t *testing.T, c *cluster, _ *running) {
				byName := map[string]*core.Node{}
				for _, n := range nodes {
					byName[n.Name] = n
				}
				upheaval(random, c, byName)
				time.Sleep(4 * time.Minute) // all back-offs are over, and no flush of leftovers has helped yet
				synctest.Wait()
				checkRules(t, c, byName)
			})
		})
	}
}

func randomNode(random *rand.Rand, i int) *core.Node {
	node := fixture.Node(fmt.Sprint("n", i), fixture.Label("zone", string(rune('a'+random.IntN(3)))),
		fixture.Allocatable("cpu", fmt.Sprint(1+random.IntN(4)), "pods", fmt.Sprint(2+random.IntN(6))))
	if random.IntN(4) == 0 {
		fixture.Taint("k", "v", corev1.TaintEffectNoSchedule)(node)
	}
	return node
}

func randomPod(random *rand.Rand, i int) *core.Pod {
	app := string(rune('x' + random.IntN(2)))
	pod := fixture.Pod(fmt.Sprint("p", i), fixture.Requests("cpu", fmt.Sprintf("%dm", 100*random.IntN(15))), fixture.Priority(random.Int32N(2)))
	pod.Labels = map[string]string{"app": app}
	if random.IntN(4) == 0 {
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	}
	if random.IntN(5) == 0 {
		pod.Spec.NodeSelector = map[string]string{"zone": string(rune('a' + random.IntN(3)))}
	}
	if random.IntN(6) == 0 {
		fixture.HostPort("", corev1.ProtocolTCP, 80)(pod)
	}
	if random.IntN(6) == 0 {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			}},
		}}
	}
	return pod
}

// upheaval is a busy hour in the cluster.
func upheaval(random *rand.Rand, c *cluster, byName map[string]*core.Node) {
	faulty := rand.New(rand.NewPCG(random.Uint64(), 1)) // used under the cluster's lock
	c.fault = func(string, int) *fault {
		if faulty.IntN(4) != 0 {
			return nil
		}
		faults := []fault{
			{err: io.EOF}, {err: io.EOF, carried: true}, {hang: true}, {hang: true, carried: true},
			{err: apierrors.NewInternalError(errors.New("x"))}, {err: apierrors.NewServiceUnavailable("x")},
		}
		return &faults[faulty.IntN(len(faults))]
	}
	c.lag = time.Duration(random.IntN(3)) * time.Second
	for i := range 60 {
		c.create(randomPod(random, i))
		switch random.IntN(6) {
		case 0:
			synctest.Wait()
		case 1:
			time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
		case 2:
			if name := fmt.Sprint("p", random.IntN(i+1)); c.has(name) {
				// Only what the watch has shown can be reported as deleted.
				time.Sleep(5 * time.Second)
				synctest.Wait()
				c.delete(name)
			}
		}
	}
	late := randomNode(random, 99)
	byName[late.Name] = late
	c.nodes.Apply(watch.Added, late)
}

func checkRules(t *testing.T, c *cluster, byName map[string]*core.Node) {
	on := map[string][]*core.Pod{}
	for name, pod := range c.stored() {
		if c.times(c.bound, name) > 1 {
			t.Errorf("%s was bound %d times", name, c.times(c.bound, name))
		}
		if pod.Spec.NodeName != "" {
			on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod)
		}
	}
	for name, pods := range on {
		for i, pod := range pods {
			others := append(append([]*core.Pod(nil), pods[:i]...), pods[i+1:]...)
			if why := refusal(pod, byName[name], others); why != "" {
				t.Errorf("%s is on %s against the rules: %s", pod.Name, name, why)
			}
		}
	}
	for _, pod := range c.stored() {
		if pod.Spec.NodeName != "" {
			continue
		}
		for name, node := range byName {
			if refusal(pod, node, on[name]) == "" {
				t.Errorf("%s waits though %s would take it; said:\n%s", pod.Name, name, c.said())
			}
			var as []*core.Pod // important
			for _, other := range on[name] {
				if *other.Spec.Priority >= *pod.Spec.Priority {
					as = append(as, other)
				}
			}
			if refusal(pod, node, as) == "" {
				t.Errorf("%s waits though pods could leave %s for it; said:\n%s", pod.Name, name, c.said())
			}
		}
	}
}

// refusal says why pod can't be on node beside others, or "".
func refusal(pod *core.Pod, node *core.Node, others []*core.Pod) string {
	cpu := pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	asked := cpu
	for _, other := range others {
		cpu += other.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		if len(pod.Spec.Containers[0].Ports) > 0 && len(other.Spec.Containers[0].Ports) > 0 {
			return "two pods have port 80"
		}
		if (pod.Spec.Affinity != nil || other.Spec.Affinity != nil) && pod.Labels["app"] == other.Labels["app"] {
			return "anti-affinity with " + other.Name
		}
	}
	switch {
	case asked > 0 && cpu > node.Status.Allocatable.Cpu().MilliValue():
		return "CPU"
	case int64(len(others)+1) > node.Status.Allocatable.Pods().Value():
		return "number of pods"
	case len(node.Spec.Taints) > 0 && len(pod.Spec.Tolerations) == 0:
		return "taint"
	case pod.Spec.NodeSelector["zone"] != "" && pod.Spec.NodeSelector["zone"] != node.Labels["zone"]:
		return "node selector"
	}
	return ""
}
