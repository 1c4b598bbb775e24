package compose_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"kctl/test/harness"
)

// startsDocker is the reason why these tests are long.
const startsDocker = "it starts a Docker engine"

var (
	images   = []string{"etcd", "apiserver", "scheduler", "balancer", "kctl"}
	services = []string{"etcd-1", "etcd-2", "etcd-3", "apiserver-1", "apiserver-2", "balancer", "scheduler-1", "scheduler-2"}
)

// TestAnyOneMayBeLost kills each container of the control plane while somebody
// writes. It uses Debian's docker-compose.
func TestAnyOneMayBeLost(t *testing.T) {
	harness.NeedLong(t, startsDocker)
	e := startControlPlane(t, []string{"docker-compose"}, (*engine).asDocumented)
	client := e.clientset(t, e.admin("127.0.0.1"))
	makeNode(t, client)

	w := startWriter(t, client)
	t.Run("an API server is killed", func(t *testing.T) {
		e.lose(t, w, "apiserver-1")
	})
	t.Run("an API server is frozen", func(t *testing.T) {
		for _, service := range []string{"apiserver-1", "apiserver-2"} { // the writer uses one of the two
			e.compose("pause", service)
			w.more(t)
			e.compose("unpause", service)
			e.allHealthy()
		}
	})
	t.Run("the leading scheduler is killed", func(t *testing.T) {
		e.lose(t, w, e.holder(t, client))
		schedules(t, client, "after-scheduler")
	})
	t.Run("the leading etcd is killed", func(t *testing.T) {
		e.lose(t, w, e.etcdLeader(t))
		schedules(t, client, "after-etcd")
	})
	t.Run("a process that dies is started again", func(t *testing.T) {
		e.dies(t, "apiserver-1")
		w.more(t)
	})
	t.Run("certificates are renewed", func(t *testing.T) {
		e.renews(t)
		w.more(t)
	})
	w.check(t)
	t.Run("all is lost", func(t *testing.T) { e.restores(t, client) })
}

// startControlPlane brings everything up with a Compose program, and checks at
// the end of the test that taking it down leaves nothing behind.
func startControlPlane(t *testing.T, program []string, up func(*engine), settings ...string) *engine {
	t.Helper()
	e := startEngine(t)
	e.program, e.env = program, append(e.env, settings...)
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := e.tryCompose("logs", "--no-color", "--tail=20")
			t.Log(logs)
		}
		e.compose("down", "--volumes")
		for what, list := range map[string][]string{"containers": {"ps", "-aq"}, "volumes": {"volume", "ls", "-q"},
			"networks": {"network", "ls", "-q", "--filter=type=custom"}} {
			if left := e.must("docker", list...); left != "" {
				t.Errorf("down left %s behind: %s", what, left)
			}
		}
	})
	up(e)
	e.allHealthy()
	return e
}

// loaded brings everything up from images that were built before.
func (e *engine) loaded() {
	e.t.Helper()
	e.load(filepath.Join(harness.Root(), "build", "images"), images...)
	e.compose("up", "-d")
}

// load loads images that `kctl images` has written into the engine.
func (e *engine) load(dir string, names ...string) {
	e.t.Helper()
	for _, image := range names {
		archive := filepath.Join(dir, image+".tar")
		if _, err := os.Stat(archive); err != nil {
			e.t.Fatalf("make images has not been run: %v", err)
		}
		e.must("docker", "load", "--quiet", "--input", archive)
	}
}

// allHealthy waits until every service is healthy.
func (e *engine) allHealthy() {
	e.t.Helper()
	for _, service := range services {
		harness.Eventually(e.t, 3*time.Minute, func() error {
			if status, err := e.inspect(service, "{{.State.Health.Status}}"); err != nil || status != "healthy" {
				return fmt.Errorf("%s is %s, %w", service, status, err)
			}
			return nil
		})
	}
}

func (e *engine) inspect(service, format string) (string, error) {
	id, err := e.tryCompose("ps", "-q", service)
	if err != nil {
		return "", err
	}
	out, err := e.try("docker", "inspect", "--format", format, strings.TrimSpace(id))
	return strings.TrimSpace(out), err
}

// lose kills a service, checks that work goes on without it, and brings it
// back.
func (e *engine) lose(t *testing.T, w *writer, service string) {
	t.Helper()
	t.Logf("kill %s", service)
	e.compose("kill", service)
	w.more(t)
	e.compose("up", "-d")
	e.allHealthy()
}

// dies kills a service's process from outside, so that only the restart policy
// brings it back.
func (e *engine) dies(t *testing.T, service string) {
	t.Helper()
	before, err := e.inspect(service, "{{.State.Pid}}")
	if err != nil {
		t.Fatal(err)
	}
	e.must("kill", "-KILL", before)
	harness.Eventually(t, 2*time.Minute, func() error {
		after, err := e.inspect(service, "{{.State.Pid}}")
		if err == nil && (after == before || after == "0") {
			err = fmt.Errorf("%s is not back", service)
		}
		return err
	})
	e.allHealthy()
}

// admin is a kubeconfig that the pki service makes, as in docs/operations.md.
func (e *engine) admin(host string) (kubeconfig string) {
	e.t.Helper()
	return e.compose("run", "--rm", "-T", "pki", "kubeconfig", "--dir=/etc/kctl",
		"--user=kubernetes-admin", "--group=system:masters", "--server=https://"+host+":6443")
}

// clientset is a client that connects from the engine's network.
func (e *engine) clientset(t *testing.T, kubeconfig string) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	config.Dial, config.QPS, config.Timeout = e.dial, -1, 15*time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// holder is the service whose scheduler leads.
func (e *engine) holder(t *testing.T, client *kubernetes.Clientset) string {
	t.Helper()
	lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "kube-scheduler", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"scheduler-1", "scheduler-2"} {
		host, err := e.inspect(service, "{{.Config.Hostname}}")
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(*lease.Spec.HolderIdentity, host+"_") {
			return service
		}
	}
	t.Fatalf("none of our schedulers holds the lease: %s", *lease.Spec.HolderIdentity)
	return ""
}

// etcdLeader is the service of etcd's leader, as its members say.
func (e *engine) etcdLeader(t *testing.T) string {
	t.Helper()
	for _, member := range []string{"etcd-1", "etcd-2", "etcd-3"} {
		out := e.compose("exec", "-T", member, "/etcdctl", "--endpoints=https://127.0.0.1:2379",
			"--cacert=/etc/kctl/pki/etcd/ca.crt", "--cert=/etc/kctl/pki/etcd/healthcheck-client.crt", "--key=/etc/kctl/pki/etcd/healthcheck-client.key",
			"endpoint", "status", "--write-out=fields")
		values := map[string]string{}
		for line := range strings.SplitSeq(out, "\n") {
			if key, value, ok := strings.Cut(line, " : "); ok {
				values[strings.Trim(strings.TrimSpace(key), `"`)] = strings.TrimSpace(value)
			}
		}
		if values["Leader"] != "" && values["Leader"] == values["MemberID"] {
			return member
		}
	}
	t.Fatal("no member leads")
	return ""
}

// writer creates config maps without a pause, and remembers which were
// acknowledged.
type writer struct {
	client *kubernetes.Clientset
	stop   context.CancelFunc
	done   chan struct{}

	mu           sync.Mutex
	acknowledged []string
}

func startWriter(t *testing.T, client *kubernetes.Clientset) *writer {
	ctx, cancel := context.WithCancel(t.Context())
	w := &writer{client: client, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for i := 0; ctx.Err() == nil; i++ {
			w.write(ctx, fmt.Sprintf("written-%05d", i))
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-w.done
	})
	return w
}

// write tries once: a config map that is not acknowledged may be stored or not.
func (w *writer) write(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	_, err := w.client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acknowledged = append(w.acknowledged, name)
}

func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acknowledged)
}

// more waits until some more writes were acknowledged.
func (w *writer) more(t *testing.T) {
	t.Helper()
	const enough = 100
	before := w.count()
	harness.Eventually(t, 2*time.Minute, func() error {
		if n := w.count() - before; n < enough {
			return fmt.Errorf("only %d writes were acknowledged since", n)
		}
		return nil
	})
}

// check ends the writing and checks that everything acknowledged is there.
func (w *writer) check(t *testing.T) {
	t.Helper()
	w.stop()
	<-w.done
	harness.NothingLost(t, w.client, w.acknowledged)
	t.Logf("%d writes were acknowledged, and all are there", len(w.acknowledged))
}

// makeNode creates a node that says it is ready; nothing runs on it.
func makeNode(t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	node, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "hollow"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("100")}
	node.Status.Capacity = node.Status.Allocatable
	if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// schedules creates a pod and waits until a scheduler has bound it to the node.
func schedules(t *testing.T, client *kubernetes.Clientset, name string) {
	t.Helper()
	pod := harness.Pod(name, "any")
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} // nobody keeps the node ready
	harness.Eventually(t, 2*time.Minute, func() error {
		_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	harness.Eventually(t, 2*time.Minute, func() error {
		pod, err := client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && pod.Spec.NodeName == "" {
			err = fmt.Errorf("pod %s has no node yet", name)
		}
		return err
	})
}
