package bench_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"kctl/test/harness"
)

// BenchmarkCommandLine times runs of kctl, from start to exit, with its
// discovery cached, and beside each a run of the machine's kubectl.
func BenchmarkCommandLine(b *testing.B) {
	c := harness.Start(b, harness.Options{Without: []string{"containerd", "scheduler", "kubelet", "registry"}})
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		b.Log("there is no kubectl on the PATH to compare with")
	}
	for _, line := range [][]string{{"version", "--client"}, {"get", "pods"}, {"get", "deployments", "-o", "yaml"}} {
		b.Run(line[0]+"-"+line[1], func(b *testing.B) {
			var ours, theirs []time.Duration
			for b.Loop() {
				for i := range 20 {
					times := []time.Duration{wholeRun(c, c.Bin("kctl"), line), 0}
					if kubectl != "" {
						times[1] = wholeRun(c, kubectl, line)
					}
					if i > 0 { // the first run fills the caches
						ours, theirs = append(ours, times[0]), append(theirs, times[1])
					}
				}
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ours[len(ours)/2].Seconds()*1000, "ms/kctl")
			b.ReportMetric(theirs[len(theirs)/2].Seconds()*1000, "ms/kubectl")
		})
	}
}

func wholeRun(c *harness.Cluster, program string, args []string) time.Duration {
	begin := time.Now()
	c.Run("", program, args...)
	return time.Since(begin)
}
