package faults_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

// process is a scheduler in a process of its own.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	port int
	log  string
}

// startScheduler starts one that leads at once, unless flags say otherwise.
func startScheduler(t *testing.T, c *harness.Cluster, kubeconfig string, flags ...string) *process {
	t.Helper()
	p := &process{t: t, port: harness.FreePort(t)}
	log, err := os.CreateTemp(filepath.Join(c.Dir, "log"), "scheduler-*.log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.log = log.Name()
	p.cmd = exec.Command(c.Bin("scheduler"), append([]string{"--kubeconfig=" + kubeconfig, "--leader-elect=false",
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(p.port),
		"--authorization-always-allow-paths=/metrics"}, flags...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(syscall.SIGKILL) })
	return p
}

// end sends the scheduler a signal, if it runs, and waits until it is gone.
func (p *process) end(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(signal)
	_ = p.cmd.Wait()
}

// runs checks that it is the process that was started.
func (p *process) runs() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		p.t.Errorf("the scheduler ended: %v", err)
	}
}

var insecure = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: 30 * time.Second}

// metric is the sum of a metric's values that have all of the labels.
func (p *process) metric(name string, labels ...string) (sum float64, err error) {
	answer, err := insecure.Get(fmt.Sprintf("https://127.0.0.1:%d/metrics", p.port))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %w", answer.Status, err)
	}
next:
	for line := range strings.SplitSeq(string(text), "\n") {
		if rest, is := strings.CutPrefix(line, name); !is || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(line, label) {
				continue next
			}
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, err
		}
		sum += value
	}
	return sum, nil
}

// paperNodes creates nodes with two CPUs each that exist only as objects.
func paperNodes(t *testing.T, c *harness.Cluster, prefix string, count int) {
	t.Helper()
	for i := range count {
		name := fmt.Sprintf("%s-%d", prefix, i)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, "set": prefix}},
			Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}},
				Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
					corev1.ResourcePods: resource.MustParse("110")},
			},
		}
		node.Status.Capacity = node.Status.Allocatable
		if _, err := c.Client().CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// paperPod fits only the nodes of a set, and is not evicted from them.
func paperPod(name, set, cpu string) *corev1.Pod {
	pod := harness.Pod(name, harness.Demo)
	pod.Labels = map[string]string{"set": set}
	pod.Spec.NodeSelector = map[string]string{"set": set}
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	return pod
}

// set is a set of pods that fill the nodes made for them to the last tenth of a
// CPU: a pod that is counted twice, or forgotten, shows.
type set struct {
	t    *testing.T
	c    *harness.Cluster
	name string
	pods int

	creating sync.WaitGroup
}

const perNode = 20

func startSet(t *testing.T, c *harness.Cluster, name string, nodes int, changes ...func(*corev1.Pod)) *set {
	t.Helper()
	paperNodes(t, c, name, nodes)
	return startPods(t, c, name, nodes, changes...)
}

// startPods is startSet without the nodes.
func startPods(t *testing.T, c *harness.Cluster, name string, nodes int, changes ...func(*corev1.Pod)) *set {
	t.Helper()
	s := &set{t: t, c: c, name: name, pods: nodes * perNode}
	client := c.Client()
	for part := range 4 {
		s.creating.Go(func() {
			for i := part; i < s.pods; i += 4 {
				pod := paperPod(fmt.Sprintf("%s-%d", name, i), name, "100m")
				for _, change := range changes {
					change(pod)
				}
				harness.Eventually(t, 2*time.Minute, func() error {
					_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
					if apierrors.IsAlreadyExists(err) {
						return nil // an earlier try stored it without an answer
					}
					return err
				})
			}
		})
	}
	return s
}

// bound is how many pods have a node.
func (s *set) bound() (int, error) {
	list, err := s.c.Client().CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{LabelSelector: "set=" + s.name})
	if err != nil {
		return 0, err
	}
	count := 0
	for i := range list.Items {
		if list.Items[i].Spec.NodeName != "" {
			count++
		}
	}
	return count, nil
}

func (s *set) awaitBound(count int) {
	s.t.Helper()
	harness.Eventually(s.t, 2*time.Minute, func() error {
		bound, err := s.bound()
		if err == nil && bound < count {
			err = fmt.Errorf("%d of %d pods have a node", bound, count)
		}
		return err
	})
}

// placed waits until all pods have a node, and checks that each node has as
// many as it can hold, no more and no fewer.
func (s *set) placed() {
	s.t.Helper()
	s.creating.Wait()
	s.awaitBound(s.pods)
	list, err := s.c.Client().CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{LabelSelector: "set=" + s.name})
	if err != nil {
		s.t.Fatal(err)
	}
	on := map[string]int{}
	for i := range list.Items {
		on[list.Items[i].Spec.NodeName]++
	}
	if len(list.Items) != s.pods || len(on) != s.pods/perNode {
		s.t.Errorf("%d pods on %d nodes, want %d on %d", len(list.Items), len(on), s.pods, s.pods/perNode)
	}
	for node, pods := range on {
		if pods != perNode {
			s.t.Errorf("%d pods on %s, which has room for %d", pods, node, perNode)
		}
	}
}

// TestSchedulerInTrouble takes from a scheduler what it needs, while it places
// pods that exactly fill their nodes. No pod is placed twice or forgotten, and
// no node gets more than it can hold.
func TestSchedulerInTrouble(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{Without: []string{"registry", "containerd", "kubelet", "scheduler"}})
	t.Run("watches broken in the middle", func(t *testing.T) { watchesBroken(t, c.In(t)) })
	t.Run("API server killed in the middle", func(t *testing.T) { serverKilled(t, c.In(t)) })
	t.Run("leader killed in the middle", func(t *testing.T) { leaderKilled(t, c.In(t)) })
	t.Run("leader frozen in the middle", func(t *testing.T) { leaderFrozen(t, c.In(t)) })
	t.Run("another scheduler beside it", func(t *testing.T) { sideBySide(t, c.In(t)) })
	t.Run("ended with events to tell", func(t *testing.T) { endedWithEvents(t, c.In(t)) })
}

func watchesBroken(t *testing.T, c *harness.Cluster) {
	b := balance(t, "127.0.0.1:"+strconv.Itoa(c.Port))
	config, err := os.ReadFile(c.Kubeconfig("scheduler"))
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	away := strings.ReplaceAll(string(config), ":"+strconv.Itoa(c.Port), ":"+b.listener.Addr().String()[len("127.0.0.1:"):])
	if err := os.WriteFile(kubeconfig, []byte(away), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startScheduler(t, c, kubeconfig)
	s := startSet(t, c, "broken", 15)
	cuts := 0
	for _, so := range []int{1, 50, 100, 150, 200, 250, 290} {
		s.awaitBound(so)
		cuts += b.cut()
	}
	s.placed()
	p.runs()
	if cuts == 0 {
		t.Error("no connection was cut")
	}
	p.end(syscall.SIGTERM)
}

func serverKilled(t *testing.T, c *harness.Cluster) {
	p := startScheduler(t, c, c.Kubeconfig("scheduler"))
	s := startSet(t, c, "killed", 15)
	for _, so := range []int{20, 150} {
		s.awaitBound(so)
		c.Kill("apiserver")
		c.Up()
	}
	s.placed()
	p.runs()
	p.end(syscall.SIGTERM)
}

func leaderKilled(t *testing.T, c *harness.Cluster) {
	lease := []string{"--leader-elect=true", "--leader-elect-resource-name=trouble", "--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=4s",
		"--leader-elect-retry-period=1s"}
	first := startScheduler(t, c, c.Kubeconfig("scheduler"), lease...)
	holder := func(but string) (name string) {
		harness.Eventually(t, 60*time.Second, func() error {
			l, err := c.Client().CoordinationV1().Leases("kube-system").Get(t.Context(), "trouble", metav1.GetOptions{})
			if err == nil && (l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" || *l.Spec.HolderIdentity == but) {
				err = errors.New("nobody leads")
			}
			if err == nil {
				name = *l.Spec.HolderIdentity
			}
			return err
		})
		return name
	}
	led := holder("")
	second := startScheduler(t, c, c.Kubeconfig("scheduler"), lease...)
	s := startSet(t, c, "leader", 15)
	s.awaitBound(100)
	if placed, err := second.metric("scheduler_schedule_attempts_total"); err != nil || placed != 0 {
		t.Errorf("the second tried %v pods while the first led, %v", placed, err)
	}
	first.end(syscall.SIGKILL)
	killed := time.Now()
	if next := holder(led); next == led {
		t.Errorf("%s leads still", led)
	}
	t.Logf("the second led after %s", time.Since(killed).Round(time.Millisecond))
	s.placed()
	second.end(syscall.SIGTERM)
}

// endedWithEvents: a scheduler that is ended at the moment of the last binding
// still writes the events of all of them.
func endedWithEvents(t *testing.T, c *harness.Cluster) {
	p := startScheduler(t, c, c.Kubeconfig("scheduler"))
	s := startSet(t, c, "told", 15)
	s.awaitBound(s.pods)
	p.end(syscall.SIGTERM)
	s.placed()
	list, err := c.Client().CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Scheduled"})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for i := range list.Items {
		if name := list.Items[i].InvolvedObject.Name; strings.HasPrefix(name, "told-") {
			told[name]++
		}
	}
	if len(told) != s.pods {
		t.Errorf("%d of %d pods have a Scheduled event", len(told), s.pods)
	}
	for name, times := range told {
		if times != 1 {
			t.Errorf("%s has %d Scheduled events", name, times)
		}
	}
}

// sideBySide: each of two schedulers places the pods that name it, and counts
// those of the other.
func sideBySide(t *testing.T, c *harness.Cluster) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf(`{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration","leaderElection":{"leaderElect":false},`+
		`"clientConnection":{"kubeconfig":%q},"profiles":[{"schedulerName":"other"}]}`, c.Kubeconfig("scheduler"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	one, other := startScheduler(t, c, c.Kubeconfig("scheduler")), startScheduler(t, c, c.Kubeconfig("scheduler"), "--config="+config)
	mine := startSet(t, c, "mine", 5)
	theirs := startSet(t, c, "theirs", 5, func(p *corev1.Pod) { p.Spec.SchedulerName = "other" })
	mine.placed()
	theirs.placed()
	for name, p := range map[string]*process{"default-scheduler": one, "other": other} {
		harness.Eventually(t, 30*time.Second, func() error { // the binding counts once it is answered
			placed, err := p.metric("scheduler_schedule_attempts_total", `result="scheduled"`)
			if err != nil || placed != float64(mine.pods) {
				return fmt.Errorf("%s placed %v pods, %v; want the %d that name it", name, placed, err, mine.pods)
			}
			return nil
		})
	}
	// Their nodes are full: only a scheduler that does not count the other's pods
	// would find room.
	big := paperPod("big", "theirs", "200m")
	c.Create(big)
	c.Await("default", "big", "without a node", func(p *corev1.Pod) bool {
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				return condition.Status == corev1.ConditionFalse && strings.Contains(condition.Message, "5 Insufficient cpu")
			}
		}
		return false
	})
	one.end(syscall.SIGTERM)
	other.end(syscall.SIGTERM)
}
