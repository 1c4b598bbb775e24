package bench_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"kctl/test/harness"
)

const (
	starts = 30
	crowd  = 30 // pods at a time
)

// BenchmarkCreateToRunning starts and ends pods one after another, and between
// them sandboxes by the runtime's own calls. Each begins when the one before it
// is gone, so that none pays for work that another left.
//
// There are two floors. "raw-cri" is the three calls with an empty
// configuration: what the runtime takes for any container. "same-calls" is the
// three calls with the configuration that the kubelet gives them for such a
// pod, and the pod's control group: no kubelet can leave out the pod's DNS,
// hosts file, token or masked paths, and they cost the runtime time. What a pod
// takes beyond the second is Kubernetes' own cost; the difference between the
// two is what being a pod costs in the runtime.
func BenchmarkCreateToRunning(b *testing.B) {
	c := harness.Start(b, harness.Options{})
	raw := newRawRuntime(b, c)
	pods := follow(b, c)
	raw.learn(pods)
	var start, end, rawStart, rawEnd, same []time.Duration
	for b.Loop() {
		for i := range starts + 1 {
			name := fmt.Sprintf("bench-%d-%d", b.N, i)
			begin := time.Now()
			pods.create(name)
			pods.await(harness.Running, name)
			started := time.Since(begin)
			begin = time.Now()
			pods.remove(name)
			pods.await(gone, name)
			ended := time.Since(begin)

			begin = time.Now()
			sandbox := raw.start(name)
			rawStarted := time.Since(begin)
			begin = time.Now()
			raw.end(sandbox)
			rawEnded := time.Since(begin)

			begin = time.Now()
			sandbox = raw.replay(name)
			replayed := time.Since(begin)
			raw.end(sandbox)
			if i > 0 { // the first run is cold
				start, end = append(start, started), append(end, ended)
				rawStart, rawEnd = append(rawStart, rawStarted), append(rawEnd, rawEnded)
				same = append(same, replayed)
			}
		}
	}
	report(b, "pod", start, "raw-cri", rawStart, "x-floor")
	report(b, "pod", start, "same-calls", same, "x-same-calls")
	report(b, "deletion", end, "raw-stop-remove", rawEnd, "x-deletion-floor")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkPodsAtOnce starts many pods at the same time, until the last one
// runs, and as many sandboxes by the runtime's own calls, also at the same
// time. The two floors are those of BenchmarkCreateToRunning: "raw-cri" with an
// empty configuration, "same-calls" with a pod's. Here, where the CPU is the
// bottleneck, they lie further apart.
func BenchmarkPodsAtOnce(b *testing.B) {
	const rounds = 3
	c := harness.Start(b, harness.Options{})
	raw := newRawRuntime(b, c)
	pods := follow(b, c)
	raw.learn(pods)
	pods.once([]string{"first"}) // the first run is cold
	var start, end, rawStart, rawEnd, same []time.Duration
	for b.Loop() {
		for round := range rounds {
			var names []string
			for i := range crowd {
				names = append(names, fmt.Sprintf("bench-%d-%d-%d", b.N, round, i))
			}
			started, ended := pods.once(names)
			start, end = append(start, started), append(end, ended)

			sandboxes := make([][2]string, crowd)
			begin := time.Now()
			atOnce(crowd, func(i int) { sandboxes[i] = raw.start(names[i]) })
			rawStart = append(rawStart, time.Since(begin))
			begin = time.Now()
			atOnce(crowd, func(i int) { raw.end(sandboxes[i]) })
			rawEnd = append(rawEnd, time.Since(begin))

			begin = time.Now()
			atOnce(crowd, func(i int) { sandboxes[i] = raw.replay(names[i]) })
			same = append(same, time.Since(begin))
			atOnce(crowd, func(i int) { raw.end(sandboxes[i]) })
		}
	}
	report(b, "pods", start, "raw-cri", rawStart, "x-floor")
	report(b, "pods", start, "same-calls", same, "x-same-calls")
	report(b, "deletion", end, "raw-stop-remove", rawEnd, "x-deletion-floor")
	b.ReportMetric(0, "ns/op")
}

// report reports the median of what was measured, of its floor, and their ratio.
func report(b *testing.B, what string, took []time.Duration, under string, floor []time.Duration, ratio string) {
	b.ReportMetric(ms(median(took)), "ms/"+what)
	b.ReportMetric(ms(median(floor)), "ms/"+under)
	b.ReportMetric(float64(median(took))/float64(median(floor)), ratio)
	if len(took) >= starts {
		b.ReportMetric(ms(quantile(took, 0.9)), "ms/"+what+"-p90")
		b.ReportMetric(ms(quantile(floor, 0.9)), "ms/"+under+"-p90")
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(d []time.Duration) time.Duration { return quantile(d, 0.5) }

func quantile(d []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[int(q*float64(len(sorted)-1))]
}

func atOnce(n int, do func(i int)) {
	var work sync.WaitGroup
	for i := range n {
		work.Go(func() { do(i) })
	}
	work.Wait()
}

// follower creates pods and follows them by a watch.
type follower struct {
	b     *testing.B
	pods  typedcorev1.PodInterface
	watch watch.Interface
}

func follow(b *testing.B, c *harness.Cluster) *follower {
	pods := c.Client().CoreV1().Pods("default")
	w, err := pods.Watch(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.Stop)
	return &follower{b: b, pods: pods, watch: w}
}

func (f *follower) create(name string) {
	f.make(harness.Pod(name, harness.Demo, "sleep", "infinity"))
}

// createOnce creates a pod that is not restarted.
func (f *follower) createOnce(name string) {
	pod := harness.Pod(name, harness.Demo, "sleep", "infinity")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	f.make(pod)
}

func (f *follower) make(pod *corev1.Pod) {
	_, err := f.pods.Create(f.b.Context(), pod, metav1.CreateOptions{})
	f.check(err)
}

func (f *follower) remove(name string) {
	f.check(f.pods.Delete(f.b.Context(), name, metav1.DeleteOptions{}))
}

// check reports an error and ends the watch, so that await ends too.
func (f *follower) check(err error) {
	if err != nil {
		f.b.Error(err)
		f.watch.Stop()
	}
}

// gone makes await wait for pods to be deleted.
func gone(*corev1.Pod) bool { return false }

// await waits until so was true for each of the pods, or it was deleted.
func (f *follower) await(so func(*corev1.Pod) bool, names ...string) {
	left := map[string]bool{}
	for _, name := range names {
		left[name] = true
	}
	for event := range f.watch.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && (event.Type == watch.Deleted || so(pod)) {
			delete(left, pod.Name)
		}
		if len(left) == 0 {
			return
		}
	}
	f.b.Fatalf("the watch ended while %d pods were awaited", len(left))
}

// once starts all pods at the same time, and when all run, ends them all at the
// same time.
func (f *follower) once(names []string) (started, ended time.Duration) {
	begin := time.Now()
	go atOnce(len(names), func(i int) { f.create(names[i]) })
	f.await(harness.Running, names...)
	started = time.Since(begin)
	begin = time.Now()
	go atOnce(len(names), func(i int) { f.remove(names[i]) })
	f.await(gone, names...)
	return started, time.Since(begin)
}
