package bench_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/test/harness"
)

const (
	crowded = 250 // pods on the node, nearly as many as its pod CIDR has addresses
	kills   = 100 // how many of them are killed
)

// BenchmarkStatuses kills containers on a node full of pods, one after another,
// and waits each time until a watcher of the API has seen the pod fail. The
// floor, for the same kill, is when the runtime first reports that the
// container has ended, asked without a pause.
func BenchmarkStatuses(b *testing.B) {
	c := harness.Start(b, harness.Options{Flags: []string{"--kubelet-flags=--max-pods=400"}})
	raw := newRawRuntime(b, c)
	pods := follow(b, c)
	var names []string
	for i := range crowded {
		names = append(names, fmt.Sprintf("crowded-%d", i))
	}
	go atOnce(crowd, func(i int) {
		for n := i; n < len(names); n += crowd {
			pods.createOnce(names[n])
		}
	})
	pods.await(harness.Running, names...)
	processes := raw.processes()
	var seen, known []time.Duration
	for b.Loop() {
		for _, name := range names[:kills] {
			time.Sleep(rand.N(200 * time.Millisecond)) // at a random moment of the kubelet's loops
			of := processes[name]
			begin := time.Now()
			if err := syscall.Kill(of.pid, syscall.SIGKILL); err != nil {
				b.Fatal(err)
			}
			told := make(chan time.Duration)
			go func() { told <- raw.ended(of.id, begin) }()
			pods.await(failed, name)
			seen = append(seen, time.Since(begin))
			known = append(known, <-told)
		}
	}
	go atOnce(len(names), func(i int) { pods.remove(names[i]) })
	pods.await(gone, names...)
	report(b, "status", seen, "runtime", known, "x-runtime")
	b.ReportMetric(ms(quantile(seen, 0.99)), "ms/status-p99")
	b.ReportMetric(ms(quantile(known, 0.99)), "ms/runtime-p99")
	b.ReportMetric(0, "ns/op")
}

func failed(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed }

// process is the process of a pod's one container.
type process struct {
	id  string
	pid int
}

// processes are those of all pods, by pod name.
func (r *rawRuntime) processes() map[string]process {
	list, err := r.client.ListContainers(r.b.Context(), &runtimeapi.ListContainersRequest{})
	if err != nil {
		r.b.Fatal(err)
	}
	all := map[string]process{}
	for _, c := range list.Containers {
		status, err := r.client.ContainerStatus(r.b.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: c.Id, Verbose: true})
		if err != nil {
			r.b.Fatal(err)
		}
		var verbose struct{ Pid int }
		if err := json.Unmarshal([]byte(status.Info["info"]), &verbose); err != nil || verbose.Pid == 0 {
			r.b.Fatalf("the runtime's verbose status tells no process: %v", err)
		}
		all[c.Labels["io.kubernetes.pod.name"]] = process{id: c.Id, pid: verbose.Pid}
	}
	return all
}

// ended is how long after begin the runtime reports that the container has
// ended.
func (r *rawRuntime) ended(id string, begin time.Time) time.Duration {
	for {
		status, err := r.client.ContainerStatus(r.b.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
		if r.failed(err) || status.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
			return time.Since(begin)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
