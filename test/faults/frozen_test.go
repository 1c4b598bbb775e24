package faults_test

import (
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

// leaderFrozen freezes the leader, as happens on a machine that is
// overcommitted or migrated, while many pods are to be placed. When another
// leads, it lets the first one go on: it must not carry out the decisions that
// it still has in mind.
func leaderFrozen(t *testing.T, c *harness.Cluster) {
	lease := []string{"--leader-elect=true", "--leader-elect-resource-name=frozen", "--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=4s",
		"--leader-elect-retry-period=1s"}
	first := startScheduler(t, c, c.Kubeconfig("scheduler"), lease...)
	holder := func() (name string) {
		l, err := c.Client().CoordinationV1().Leases("kube-system").Get(t.Context(), "frozen", metav1.GetOptions{})
		if err == nil && l.Spec.HolderIdentity != nil {
			name = *l.Spec.HolderIdentity
		}
		return name
	}
	until := func(ok func(holder string) bool) {
		harness.Eventually(t, 60*time.Second, func() error {
			if !ok(holder()) {
				return errors.New("the leader is " + holder())
			}
			return nil
		})
	}
	until(func(name string) bool { return name != "" })
	led := holder()
	second := startScheduler(t, c, c.Kubeconfig("scheduler"), lease...)
	s := startPods(t, c, "frozen", 250)
	s.creating.Wait()
	var noding sync.WaitGroup
	noding.Go(func() { paperNodes(t, c, "frozen", 250) })
	s.awaitBound(10)
	if err := first.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	noding.Wait()
	until(func(name string) bool { return name != "" && name != led })
	if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait() // it exits, because it has lost the lease
	s.placed()
	second.end(syscall.SIGTERM)
}
