package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// HollowNodes runs hollow nodes beside the cluster, hollow-0 and so on, until
// the test ends. It returns the id of their process when all of them are ready.
func (c *Cluster) HollowNodes(t testing.TB, nodes int) int {
	t.Helper()
	cmd := exec.Command(c.Bin("kubelet"), "hollow", "--nodes="+strconv.Itoa(nodes), "--kubeconfig="+c.Kubeconfig("admin"))
	log, err := os.CreateTemp(c.Dir, "hollow-*.log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the process has a descriptor of its own
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, c.Env()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("hollow nodes: %v", err)
		}
	})
	Eventually(t, 3*time.Minute, func() error {
		ready, err := c.readyNodes(t.Context())
		if err == nil && ready < nodes {
			err = fmt.Errorf("%d of %d hollow nodes are ready", ready, nodes)
		}
		return err
	})
	return cmd.Process.Pid
}

func (c *Cluster) readyNodes(ctx context.Context) (int, error) {
	list, err := c.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	ready := 0
	for i := range list.Items {
		if core.NodeReady(&list.Items[i]) {
			ready++
		}
	}
	return ready, nil
}
