package cycle

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"kctl/proto/relay"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/cache"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/metrics"
	"kctl/scheduler/internal/nominate"
	"kctl/scheduler/internal/profile"
)

// BenchmarkPlace measures the serial part of scheduling: snapshot, filter,
// score, assume. Its floor is a walk over the nodes that only compares CPU.
func BenchmarkPlace(b *testing.B) {
	for _, nodes := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprint(nodes, "-nodes"), func(b *testing.B) { benchmarkPlace(b, nodes) })
	}
}

func benchmarkPlace(b *testing.B, nodes int) {
	configuration, err := profile.Default()
	if err != nil {
		b.Fatal(err)
	}
	profiles, err := configuration.Build(profile.Services{})
	if err != nil {
		b.Fatal(err)
	}
	p := profiles["default-scheduler"]
	c := cache.New(clock.RealClock{}, cache.DefaultExpiry)
	for i := range nodes {
		c.SetNode(fixture.Node(fmt.Sprintf("node-%05d", i), fixture.Allocatable("cpu", "1000000", "memory", "1000Ti", "pods", "1000000")))
	}
	pods := make([]*framework.PodInfo, 1000)
	placer := newPlacer(nominate.New(), nil, &points{metrics: metrics.New(), clock: clock.RealClock{}})
	b.ResetTimer()
	for i := range b.N {
		if i%len(pods) == 0 {
			// A new batch each time: the last one ends, so that nodes stay small.
			b.StopTimer()
			for j := range pods {
				if pods[j] != nil {
					c.Forget(pods[j].Pod.UID)
				}
				pods[j] = framework.NewPodInfo(fixture.Pod(fmt.Sprint("pod-", i+j), fixture.Requests("cpu", "100m", "memory", "100Mi")))
			}
			b.StartTimer()
		}
		pod := pods[i%len(pods)]
		c.Update(placer.snapshot)
		placement, err := placer.place(b.Context(), p, framework.NewCycleState(&relay.Recorder{}), pod, func(relay.Hop) {})
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Assume(pod, placement.Node); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	perPod := b.Elapsed() / time.Duration(b.N)
	floor := walkOnly(placer.snapshot.Nodes())
	b.ReportMetric(float64(time.Second)/float64(perPod), "pods/s")
	b.ReportMetric(float64(perPod)/float64(floor), "×floor")
}

// walkOnly is the time of one walk over nodes that looks at their CPU.
func walkOnly(nodes []*framework.NodeInfo) time.Duration {
	const rounds = 1000
	var most int64
	began := time.Now()
	for range rounds {
		for _, n := range nodes {
			most = max(most, n.Allocatable.MilliCPU-n.Requested.MilliCPU)
		}
	}
	took := time.Since(began) / rounds
	if most == 0 {
		return 0
	}
	return max(took, 1)
}
