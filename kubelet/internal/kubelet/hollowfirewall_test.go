package kubelet

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A hollow kubelet is one of many on a machine, whose packets are none of its business.
func TestAHollowKubeletMakesNoRules(t *testing.T) {
	dir := t.TempDir()
	called := filepath.Join(dir, "called")
	for _, program := range []string{"iptables", "ip6tables"} {
		if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\necho \"$0 $*\" >>"+called+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	b, _ := newHollowBed(t, nil)
	if !b.config.MakeIPTablesUtilChains {
		t.Fatal("it is told not to make any")
	}
	b.create(hollowPod("web", nil))
	b.waitPhase("web", corev1.PodRunning)
	b.stop() // which waits for all loops
	if said, err := os.ReadFile(called); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it ran %s, %v", said, err)
	}
}
