package relay_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kctl/proto/relay"
	"kctl/test/harness"
)

// again is what kctl trace shows of a restart.
type again struct {
	relay.Restart
	Because string        `json:"because"`
	Moments []relay.Stamp `json:"moments"`
}

// awaitRestarts waits until the restarts that are shown of a pod are as wanted.
func awaitRestarts(t *testing.T, c *harness.Cluster, name string, ok func([]again) bool) []again {
	t.Helper()
	var trace struct {
		Restarts []again `json:"restarts"`
	}
	harness.Eventually(t, 2*time.Minute, func() error {
		trace.Restarts = nil
		if err := json.Unmarshal([]byte(c.Kctl("trace", "pod/"+name, "-o", "json")), &trace); err != nil {
			return err
		}
		if !ok(trace.Restarts) {
			return fmt.Errorf("restarts of %s: %+v", name, trace.Restarts)
		}
		return nil
	})
	return trace.Restarts
}

// passed fails the test unless a restart has these moments, in this order and no others.
func passed(t *testing.T, r again, want ...string) {
	t.Helper()
	var hops []string
	for i, s := range r.Moments {
		hops = append(hops, strings.TrimSuffix(strings.TrimPrefix(string(s.Hop), "kubelet."), "/"+r.Container))
		if i > 0 && s.At.Before(r.Moments[i-1].At) {
			t.Errorf("%s is too early: %+v", s.Hop, r.Moments)
		}
	}
	if !slices.Equal(hops, want) {
		t.Errorf("restart %d of %s has the moments %v, want %v", r.Number, r.Container, hops, want)
	}
}

// What happens to a pod's containers after their first start is seen hop by hop, and however often
// it happens, the last times are what is kept.
func TestRestartsAreSeen(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "kubelet.yaml")
	text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncrashLoopBackOff: {maxContainerRestartPeriod: 1s}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := harness.Start(t, harness.Options{Flags: []string{"--kubelet-flags=--config=" + config}})
	shell := c.Shell()
	for name, test := range map[string]func(*testing.T, *harness.Cluster, string){
		"a crash loop":              crashLoopIsSeen,
		"a failing liveness probe":  livenessIsSeen,
		"an image that is changed":  changedImageIsSeen,
		"memory that has run out":   outOfMemoryIsSeen,
		"a pod without any restart": noRestartIsSeen,
	} {
		t.Run(name, func(t *testing.T) { test(t, c.In(t), shell) })
	}
}

func crashLoopIsSeen(t *testing.T, c *harness.Cluster, shell string) {
	c.Create(script("crashloop", shell, "exit 3"))
	const often = 2 * relay.MaxRestartsOfContainer
	seen := awaitRestarts(t, c, "crashloop", func(all []again) bool {
		return len(all) > 0 && all[len(all)-1].Number > often && !all[len(all)-1].Ready.IsZero()
	})
	if len(seen) != relay.MaxRestartsOfContainer {
		t.Errorf("%d restarts are kept, want %d", len(seen), relay.MaxRestartsOfContainer)
	}
	for i, r := range seen {
		if r.Cause != relay.CauseExit || r.ExitCode != 3 || r.Reason != "Error" || i > 0 && r.Number != seen[i-1].Number+1 {
			t.Errorf("%+v", r)
		}
	}
	passed(t, seen[0], "container-ended", "back-off-began", "back-off-over", "image-pulled", "container-created", "container-started", "container-ready")
	out := c.Kctl("trace", "pod/crashloop")
	for _, want := range []string{"Its restarts (c ", "it ended by itself (exit code 3, Error)", "back-off of "} {
		if !strings.Contains(out, want) {
			t.Errorf("trace lacks %q:\n%s", want, out)
		}
	}
	if page := c.Kctl("trace", "pod/crashloop", "-o", "html"); !strings.Contains(page, fmt.Sprintf("Restart %d of c", seen[len(seen)-1].Number)) {
		t.Log("the page was made after the next restart") // it goes on meanwhile
	}
	if stored := c.Kctl("get", "pod", "crashloop", "-o", "yaml", "--show-managed-fields"); strings.Contains(strings.ToLower(stored), "kctl-re") ||
		strings.Contains(stored, "backOffFrom") {
		t.Errorf("the pod has what is only of its trace:\n%s", stored)
	}
	c.Kctl("delete", "pod", "crashloop", "--now")
}

func livenessIsSeen(t *testing.T, c *harness.Cluster, shell string) {
	pod := script("unwell", shell, "sleep 3600")
	pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(9)}},
		PeriodSeconds: 1, FailureThreshold: 1,
	}
	c.Create(pod)
	seen := awaitRestarts(t, c, "unwell", func(all []again) bool { return len(all) > 0 && !all[0].Ready.IsZero() })
	if r := seen[0]; r.Cause != relay.CauseLiveness || r.ExitCode != 137 || !strings.Contains(r.Because, "failed its liveness probe") {
		t.Errorf("%+v", r)
	}
	c.Kctl("delete", "pod", "unwell", "--now")
}

func changedImageIsSeen(t *testing.T, c *harness.Cluster, shell string) {
	pod := harness.Pod("changed", harness.Demo)
	pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
	c.Create(pod)
	c.AwaitRunning("changed")
	c.Kctl("patch", "pod", "changed", "--type=json", "-p", `[{"op":"replace","path":"/spec/containers/0/image","value":"`+harness.Demo+`:latest"}]`)
	seen := awaitRestarts(t, c, "changed", func(all []again) bool { return len(all) == 1 && !all[0].Ready.IsZero() })
	if r := seen[0]; r.Cause != relay.CauseDefinition || r.Number != 1 {
		t.Errorf("%+v", r)
	}
	passed(t, seen[0], "container-ended", "image-pulled", "container-created", "container-started", "container-ready")
	c.Kctl("delete", "pod", "changed", "--now")
}

func outOfMemoryIsSeen(t *testing.T, c *harness.Cluster, shell string) {
	pod := script("greedy", shell, "tail /dev/zero")
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Mi")}
	c.Create(pod)
	seen := awaitRestarts(t, c, "greedy", func(all []again) bool { return len(all) > 0 && !all[0].Started.IsZero() })
	if r := seen[0]; r.Cause != relay.CauseOOM || r.Reason != "OOMKilled" {
		t.Errorf("%+v", r)
	}
	c.Kctl("delete", "pod", "greedy", "--now")
}

func noRestartIsSeen(t *testing.T, c *harness.Cluster, shell string) {
	c.Create(script("steady", shell, "sleep 3600"))
	c.AwaitRunning("steady")
	if out := c.Kctl("trace", "pod/steady"); strings.Contains(out, "estart") {
		t.Errorf("trace of a pod that was not restarted:\n%s", out)
	}
	c.Kctl("delete", "pod", "steady", "--now")
}
