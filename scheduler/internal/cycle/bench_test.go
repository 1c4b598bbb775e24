package cycle

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/relay"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/cache"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/metrics"
	"kctl/scheduler/internal/nominator"
	"kctl/scheduler/internal/plugins/defaultpreemption"
	"kctl/scheduler/internal/profile"
)

// BenchmarkPlace measures the serial part of scheduling 10,000 pods: snapshot,
// filter, score, assume; with preemption, also the search for victims and the
// second attempt. Its floor is a loop over as many nodes as a search visits
// when every node fits, which only compares CPU.
func BenchmarkPlace(b *testing.B) {
	for _, w := range []struct {
		name  string
		nodes []int
		load  workload
	}{
		{"basic", []int{100, 1000, 5000, 15000}, workload{pods: 10_000}},
		{"pods-apart", []int{5000}, workload{pods: 2000, change: apart}},
		{"zones-alike", []int{5000, 15000}, workload{pods: 10_000, change: spread}},
		{"preempting", []int{5000}, workload{pods: 2000, change: fixture.Priority(100), residents: 4}},
	} {
		for _, nodes := range w.nodes {
			b.Run(fmt.Sprintf("%s/%d-nodes", w.name, nodes), func(b *testing.B) {
				var perPod, floor []time.Duration
				for b.Loop() {
					s := newBench(b, nodes, w.load)
					perPod, floor = append(perPod, s.run()), append(floor, walkOnly(s.placer.snapshot.Turns()))
				}
				b.ReportMetric(float64(time.Second)/float64(median(perPod)), "pods/s")
				b.ReportMetric(float64(median(perPod))/float64(median(floor)), "×floor")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// workload is a number of pods of one kind, on nodes that have room for
// residents pods of low priority, and run them.
type workload struct {
	pods      int
	change    func(*core.Pod)
	residents int
}

func labelled(pod *core.Pod) map[string]string {
	pod.Labels = map[string]string{"app": "apart"}
	return pod.Labels
}

// apart keeps a pod off the nodes of pods of its kind.
func apart(pod *core.Pod) {
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: labelled(pod)},
		}},
	}}
}

// spread distributes pods evenly over zones.
func spread(pod *core.Pod) {
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		TopologyKey:       corev1.LabelTopologyZone,
		MaxSkew:           1,
		WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: labelled(pod)},
	}}
}

// bench is the cluster of one run.
type bench struct {
	b       *testing.B
	cache   *cache.Cache
	profile *framework.Profile
	placer  *placer
	pods    []*framework.PodInfo
}

func newBench(b *testing.B, nodes int, load workload) *bench {
	b.Helper()
	b.StopTimer()
	defer b.StartTimer()
	const zones = 10
	s := &bench{b: b, cache: cache.New(clock.RealClock{}, cache.DefaultExpiry)}
	nominated := nominator.New()
	s.profile = defaultProfile(b, profile.Services{Preemption: defaultpreemption.Services{
		Nominator: nominated, Executor: s, Budgets: func(string) []*policyv1.PodDisruptionBudget { return nil },
	}})
	s.placer = newPlacer(nominated, nil, newPoints(metrics.New(), clock.RealClock{}), zap.NewNop())
	size := fixture.Allocatable("cpu", "32", "memory", "256Gi")
	if load.residents > 0 {
		size = fixture.Allocatable("cpu", fmt.Sprint(load.residents), "memory", "256Gi")
	}
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		s.cache.SetNode(fixture.Node(name, size, fixture.Label(corev1.LabelTopologyZone, fmt.Sprint("zone-", i%zones))))
		for j := range load.residents {
			s.cache.SetPod(fixture.Pod(fmt.Sprintf("resident-%d-%d", i, j), fixture.On(name), fixture.Requests("cpu", "900m", "memory", "1Gi")))
		}
	}
	cpu := "100m"
	if load.residents > 0 {
		cpu = "1"
	}
	for i := range load.pods {
		changes := []func(*core.Pod){fixture.Requests("cpu", cpu, "memory", "500Mi")}
		if load.change != nil {
			changes = append(changes, load.change)
		}
		s.pods = append(s.pods, framework.NewPodInfo(fixture.Pod(fmt.Sprint("pod-", i), changes...)))
	}
	s.cache.Update(s.placer.snapshot)
	return s
}

// Evict implements defaultpreemption.Executor: victims are gone at once.
func (s *bench) Evict(_ *core.Pod, victims []*core.Pod, _ string) {
	for _, victim := range victims {
		s.cache.RemovePod(victim.UID)
		s.placer.nominator.Left(victim.UID)
	}
}

// run places all pods, one after the other, and returns the time per pod.
func (s *bench) run() time.Duration {
	began := time.Now()
	for _, pod := range s.pods {
		node := s.place(pod)
		if err := s.cache.Assume(pod, node); err != nil {
			s.b.Fatal(err)
		}
		s.placer.nominator.Taken(pod.Pod.UID, node)
	}
	return time.Since(began) / time.Duration(len(s.pods))
}

// median of several runs, because shared machines are slow now and then.
func median(runs []time.Duration) time.Duration {
	slices.Sort(runs)
	return runs[len(runs)/2]
}

// place places a pod, by preemption if necessary.
func (s *bench) place(pod *framework.PodInfo) string {
	for range 2 {
		s.cache.Update(s.placer.snapshot)
		state := framework.NewCycleState(&relay.Stamps{})
		result, err := s.placer.schedulePod(s.b.Context(), s.profile, state, pod, func(relay.Hop) {})
		var fit *framework.FitError
		switch {
		case err == nil:
			return result.Node
		case !errors.As(err, &fit):
			s.b.Fatal(err)
		}
		if node, status := s.profile.RunPostFilter(s.b.Context(), state, pod, framework.Refused{Nodes: fit.Resolvable}); node == "" {
			s.b.Fatal(fit, status)
		}
	}
	s.b.Fatal("no room after others have left for ", pod.Key())
	return ""
}

// walkOnly is the time of one loop over as many nodes as a search visits, which
// looks at their CPU.
func walkOnly(nodes []*framework.NodeInfo) time.Duration {
	const rounds = 1000
	var most int64
	enough, next := numFeasibleNodesToFind(len(nodes), 0), 0
	began := time.Now()
	for range rounds * enough {
		n := nodes[next]
		most = max(most, n.Allocatable.MilliCPU-n.Requested.MilliCPU)
		if next++; next == len(nodes) {
			next = 0
		}
	}
	took := time.Since(began) / rounds
	if most == 0 {
		return 0
	}
	return max(took, 1)
}
