package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

// TestFullDisk fills the disk of an API server with an embedded etcd while
// somebody writes. The server ends and says why. When there is room again,
// everything acknowledged is there.
func TestFullDisk(t *testing.T) {
	harness.NeedRoot(t)
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=160m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	c := harness.Start(t, harness.Options{
		Without: []string{"registry", "containerd", "kubelet", "scheduler"},
		Flags:   []string{"--apiserver-flags=--data-dir=" + disk},
	})
	var stored []string
	text := strings.Repeat("y", 500_000)
	write := func() error {
		name := fmt.Sprintf("kept-%d", len(stored))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := c.Client().CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"text": text},
		}, metav1.CreateOptions{})
		if err == nil {
			stored = append(stored, name)
		}
		return err
	}
	for range 3 {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	filler := filepath.Join(disk, "filler")
	if err := fill(filler); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	harness.Eventually(t, 2*time.Minute, func() error {
		if write() == nil {
			return fmt.Errorf("%d writes found room", len(stored))
		}
		return nil
	})
	if log, err := os.ReadFile(filepath.Join(c.Dir, "log", "apiserver.log")); err != nil || !strings.Contains(string(log), "no space left on device") {
		t.Errorf("it does not say why: %v", err)
	}
	// If it can't start without room, it says why.
	if r := c.Run("", c.Bin("kctl"), "up", "--dir", c.Dir, "--port", fmt.Sprint(c.Port), "--node-name", c.Node, "--without=registry,containerd,kubelet,scheduler",
		"--apiserver-flags=--data-dir="+disk); r.Code != 0 && !strings.Contains(r.Stderr, "no space left on device") {
		t.Errorf("it does not start, and does not say why: %s", r.Stderr)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	c.Up()
	for _, name := range stored {
		if _, err := c.Client().CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s was acknowledged: %v", name, err)
		}
	}
}

// fill writes to a new file until there is no room.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	zeros := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(zeros)
	}
	return err
}
