package kubelet

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
)

// long says whether tests may take minutes.
func long() bool { return os.Getenv("KCTL_LONG") != "" }

// Pods start, crash, end and are deleted in random order, fifty at a time at
// most. In the end nothing is left of any.
func TestChurn(t *testing.T) {
	rounds := 40
	if long() {
		rounds = 1200 // takes more than a minute
	}
	b, _ := newHollowBed(t, nil)
	churn(b, rounds, func(name string) *core.Pod {
		annotations := map[string]string{}
		if rand.IntN(3) == 0 {
			annotations[simulated.ExitAfter] = "20ms"
		}
		if rand.IntN(3) == 0 {
			annotations[simulated.ExitCode] = "1"
		}
		if rand.IntN(8) == 0 {
			annotations[simulated.Stubborn] = "true"
		}
		return hollowPod(name, annotations)
	})
	b.waitEmpty()
}

// The same with real containers.
func TestChurnOnContainerd(t *testing.T) {
	if !long() {
		t.Skip("skipped: takes minutes; set KCTL_LONG=1")
	}
	b := newBed(t)
	scripts := []string{forever, "exit 0", "exit 1", "sleep 1"}
	churn(b, 400, func(name string) *core.Pod { return shellPod(name, scripts[rand.IntN(len(scripts))]) })
	b.waitEmpty()
}

// churn creates and deletes pods, fifty at a time at most, and waits for the
// end of all of them.
func churn(b *bed, rounds int, newPod func(name string) *core.Pod) {
	const most = 50
	restarts := []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	var there []string
	remove := func(at int) {
		name := there[at]
		there = append(there[:at], there[at+1:]...)
		b.deleteWithin(name, 1)
		if rand.IntN(2) == 0 { // the next pod with this name has to wait for this one's end
			b.api.wait(name+" to be gone", func() bool { return b.api.pod(name) == nil })
		}
	}
	for i := range rounds {
		if len(there) == most || len(there) > 0 && rand.IntN(3) == 0 {
			remove(rand.IntN(len(there)))
			continue
		}
		pod := newPod(fmt.Sprintf("churn-%d", i))
		pod.Spec.RestartPolicy = restarts[rand.IntN(len(restarts))]
		b.create(pod)
		there = append(there, pod.Name)
	}
	for len(there) > 0 {
		remove(len(there) - 1)
	}
	for i := range rounds {
		name := fmt.Sprintf("churn-%d", i)
		b.api.wait(name+" to be gone", func() bool { return b.api.pod(name) == nil })
	}
}

// deleteWithin deletes the pod with a grace period in seconds.
func (b *bed) deleteWithin(name string, grace int64) {
	b.t.Helper()
	if err := b.client.Resource(core.Pods, "default").Delete(b.t.Context(), name, &metav1.DeleteOptions{GracePeriodSeconds: &grace}, nil); err != nil {
		b.t.Fatal(err)
	}
}

// Three hundred pods on one node run side by side, and end.
func TestThreeHundredPods(t *testing.T) {
	if !long() {
		t.Skip("skipped: takes a minute on a machine that has other things to do; set KCTL_LONG=1")
	}
	const pods = 300
	b, _ := newHollowBed(t, func(c *config.Config) { c.MaxPods = pods })
	start := time.Now()
	for i := range pods {
		b.create(hollowPod(fmt.Sprintf("many-%d", i), nil))
	}
	for i := range pods {
		b.waitPhase(fmt.Sprintf("many-%d", i), corev1.PodRunning)
	}
	t.Logf("%d pods run after %v", pods, time.Since(start))
	addresses := map[string]bool{}
	for i := range pods {
		addresses[b.api.pod(fmt.Sprintf("many-%d", i)).Status.PodIP] = true
	}
	if len(addresses) != pods {
		t.Errorf("%d addresses for %d pods", len(addresses), pods)
	}
	one := hollowPod("one-too-many", nil)
	b.create(one)
	if status := b.waitPhase("one-too-many", corev1.PodFailed).Status; status.Reason != "OutOfpods" {
		t.Errorf("one too many: %s, %s", status.Reason, status.Message)
	}
	b.delete("one-too-many")
	b.timeEnds(pods / 3)
	for i := range pods {
		b.delete(fmt.Sprintf("many-%d", i))
	}
	for i := range pods {
		name := fmt.Sprintf("many-%d", i)
		b.api.wait(name+" to be gone", func() bool { return b.api.pod(name) == nil })
	}
	b.waitEmpty()
}

// timeEnds prints how long it takes until the API sees the end of a container,
// one after the other, while all other pods run.
func (b *bed) timeEnds(pods int) {
	b.t.Helper()
	var took []time.Duration
	for i := range pods {
		name := fmt.Sprintf("many-%d", i)
		_, id, _ := strings.Cut(b.api.pod(name).Status.ContainerStatuses[0].ContainerID, "://")
		start := time.Now()
		if err := b.kubelet.cri.StopContainer(b.t.Context(), id, 0); err != nil {
			b.t.Fatal(err)
		}
		b.api.wait(name+" to have ended", func() bool { return b.api.pod(name).Status.ContainerStatuses[0].State.Terminated != nil })
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.t.Logf("the API heard of an end after %v (p50), %v (p99)", took[len(took)/2], took[len(took)*99/100])
}
