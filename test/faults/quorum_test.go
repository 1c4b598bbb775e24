package faults_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kctl/test/harness"
)

// balancer passes connections on to the first backend that accepts them, like a
// load balancer in front of several API servers.
type balancer struct {
	listener net.Listener
	backends []string
	all      sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool
}

// cut ends all open connections and returns how many there were.
func (b *balancer) cut() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for conn := range b.open {
		conn.Close()
	}
	return len(b.open)
}

// note registers a connection to be cut, until the returned function is called.
func (b *balancer) note(conn net.Conn) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[conn] = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.open, conn)
	}
}

func balance(t *testing.T, backends ...string) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{listener: listener, backends: backends, open: map[net.Conn]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	b.all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			b.all.Go(func() { b.pass(ctx, client) })
		}
	})
	t.Cleanup(func() { cancel(); listener.Close(); b.all.Wait() })
	return b
}

func (b *balancer) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	defer b.note(client)()
	for _, address := range b.backends {
		server, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			continue
		}
		defer server.Close()
		defer context.AfterFunc(ctx, func() { client.Close(); server.Close() })()
		done := make(chan struct{}, 2)
		for _, way := range [][2]net.Conn{{server, client}, {client, server}} {
			b.all.Go(func() { _, _ = io.Copy(way[0], way[1]); done <- struct{}{} })
		}
		<-done // one side is gone; the deferred calls close the other
		return
	}
}

// load writes one object after another until the test ends it, retrying each
// until it is stored.
type load struct {
	t      *testing.T
	client kubernetes.Interface
	mu     sync.Mutex
	stored []string // acknowledged
	done   chan struct{}
	cancel context.CancelFunc
}

func startLoad(t *testing.T, client kubernetes.Interface) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{t: t, client: client, done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(l.done)
		for i := 0; ctx.Err() == nil; i++ {
			l.write(ctx, fmt.Sprintf("kept-%06d", i))
		}
	}()
	return l
}

func (l *load) write(ctx context.Context, name string) {
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := l.client.CoreV1().ConfigMaps("default").Create(try, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		cancel()
		if err == nil || apierrors.IsAlreadyExists(err) { // an earlier try stored it without an answer
			l.mu.Lock()
			l.stored = append(l.stored, name)
			l.mu.Unlock()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond): // to spare the server; nothing depends on it
		}
	}
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.stored)
}

// goesOn waits until more was written.
func (l *load) goesOn(what string) {
	l.t.Helper()
	begun := l.count()
	harness.Eventually(l.t, 2*time.Minute, func() error {
		if now := l.count(); now < begun+20 {
			return fmt.Errorf("%s: only %d writes more", what, now-begun)
		}
		return nil
	})
}

// TestTwoServersAndThreeMembers stops an API server, then one member of etcd,
// then most of them, while somebody writes. Nothing acknowledged is lost,
// nothing is acknowledged without a quorum, and no API server has to be
// restarted.
func TestTwoServersAndThreeMembers(t *testing.T) {
	t.Parallel()
	members := harness.StartEtcds(t, 3)
	var urls []string
	for _, m := range members {
		urls = append(urls, m.URL)
	}
	c := harness.Start(t, harness.Options{Without: []string{"registry", "containerd", "kubelet"}, Flags: []string{"--etcd-servers", strings.Join(urls, ",")}})
	first, second := "127.0.0.1:"+strconv.Itoa(c.Port), secondServer(t, c)
	front := balance(t, first, second)
	config := c.Config("admin")
	config.Host = "https://" + front.listener.Addr().String()
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "writer"))
	if err != nil {
		t.Fatal(err)
	}
	l := startLoad(t, client)
	l.goesOn("at first")

	c.Kill("apiserver")
	l.goesOn("with one server")
	c.Up()
	server := c.PID("apiserver")

	members[0].Kill()
	l.goesOn("with two of three members")

	members[1].Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	_, err = client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "nobody-keeps"}}, metav1.CreateOptions{})
	cancel()
	if err == nil {
		t.Error("a write was acknowledged without a quorum")
	}
	members[1].Start()
	l.goesOn("with most members again")
	members[0].Start()
	l.goesOn("with all members again")
	l.cancel()
	<-l.done

	harness.NothingLost(t, c.Client(), l.stored)
	t.Logf("%d writes were acknowledged", len(l.stored))
	// A scheduler that could not renew its lease has exited, like upstream's: its
	// supervisor has to start it again.
	c.Up()
	schedules(t, c)
	if c.PID("apiserver") != server {
		t.Error("the API server was started again")
	}
}

// secondServer starts another API server, with the flags of the cluster's and
// over the same etcd.
func secondServer(t *testing.T, c *harness.Cluster) (address string) {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c.PID("apiserver")))
	if err != nil {
		t.Fatal(err)
	}
	port := harness.FreePort(t)
	var args []string
	for _, arg := range bytes.Split(bytes.TrimRight(line, "\x00"), []byte{0})[1:] {
		args = append(args, string(arg))
	}
	log, err := os.Create(filepath.Join(c.Dir, "log", "second.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(c.Bin("apiserver"), append(args, "--secure-port="+strconv.Itoa(port), "--data-dir="+t.TempDir())...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	address = "127.0.0.1:" + strconv.Itoa(port)
	config := c.Config("admin")
	config.Host = "https://" + address
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 60*time.Second, func() error {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err
	})
	return address
}

// schedules checks that a new pod is bound to a node.
func schedules(t *testing.T, c *harness.Cluster) {
	t.Helper()
	ready := corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}},
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("4Gi"),
			corev1.ResourcePods: resource.MustParse("10")},
	}
	ready.Capacity = ready.Allocatable
	if _, err := c.Client().CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "paper"}, Status: ready},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := harness.Pod("placed", harness.Demo)
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	c.Create(pod)
	c.Await("default", "placed", "on a node", func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })
}
