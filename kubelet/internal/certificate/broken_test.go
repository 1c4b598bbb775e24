package certificate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/pki"
	"kctl/proto/rest"
)

// torn are versions of a file such as a power failure leaves.
func torn(t *testing.T, whole []byte) map[string][]byte {
	t.Helper()
	return map[string][]byte{
		"empty": {}, "half": whole[:len(whole)/2], "zeros": make([]byte, len(whole)),
		"no key": whole[:strings.Index(string(whole), "-----END CERTIFICATE-----")+len("-----END CERTIFICATE-----\n")],
	}
}

// A kubelet whose client certificate is broken gets a new one if it can, and
// otherwise says what to do. Either way nothing is lost.
func TestABrokenClientCertificateIsReplaced(t *testing.T) {
	s, o := newSigner(t), options(t)
	dir := t.TempDir()
	path, bootstrap := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "bootstrap")
	s.kubeconfig(bootstrap)
	if err := Bootstrap(t.Context(), path, bootstrap, o); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(o.File())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range torn(t, whole) {
		t.Run(name, func(t *testing.T) {
			put(t, o.File(), content)
			cfg, err := rest.LoadKubeconfig(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := Adopt(cfg, o); err == nil || !strings.Contains(err.Error(), "--bootstrap-kubeconfig") {
				t.Errorf("with nothing to begin with: %v", err)
			}
			if kept, err := os.ReadFile(o.File() + ".broken"); err != nil || string(kept) != string(content) {
				t.Errorf("the old content is lost: %v", err)
			}
			put(t, o.File(), content)
			if err := Bootstrap(t.Context(), path, bootstrap, o); err != nil {
				t.Fatal(err)
			}
			if err := Adopt(cfg, o); err != nil {
				t.Errorf("after the bootstrap: %v", err)
			}
		})
	}
	put(t, path, nil) // the kubeconfig itself is empty
	if err := Bootstrap(t.Context(), path, bootstrap, o); err != nil {
		t.Error(err)
	}
	put(t, path, []byte("apiVersion: v1\nkind: [Conf"))
	if err := Bootstrap(t.Context(), path, bootstrap, o); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("a kubeconfig that nobody can read: %v", err)
	}
}

func TestABrokenServingCertificateIsReplaced(t *testing.T) {
	o := options(t)
	o.Purpose = Serving
	if err := Provide(o); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(o.File())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range torn(t, whole) {
		put(t, o.File(), content)
		if err := Provide(o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if fresh, err := pki.Fresh(o.File(), o.File(), o.Clock.Now()); !fresh || err != nil {
			t.Errorf("%s: %v, %v", name, fresh, err)
		}
	}
}

// To a clock that is a day behind, a new certificate is not valid yet. It is
// used all the same, and the log says what is wrong.
func TestACertificateOfTomorrowIsUsed(t *testing.T) {
	s, o := newSigner(t), options(t)
	logs, seen := observer.New(zap.WarnLevel)
	o.Logger = zap.New(logs)
	o.Clock.(*clocktesting.FakeClock).SetTime(time.Now().Add(-24 * time.Hour))
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	s.kubeconfig(filepath.Join(dir, "bootstrap"))
	for range 2 { // the second time it exists already
		if err := Bootstrap(t.Context(), path, filepath.Join(dir, "bootstrap"), o); err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	if len(s.requests) != 1 {
		t.Errorf("%d requests", len(s.requests))
	}
	s.mu.Unlock()
	cfg, err := rest.LoadKubeconfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Adopt(cfg, o); err != nil {
		t.Error(err)
	}
	if seen.FilterMessageSnippet("is the clock right?").Len() == 0 {
		t.Errorf("it is not logged: %v", seen.All())
	}
	due, err := (&Rotator{Options: o}).due()
	if now := time.Now(); err != nil || due.Before(now) || due.After(now.Add(s.lasts)) {
		t.Errorf("it is replaced at %v, %v; now it is %v", due, err, now)
	}
}

// On a full disk the old certificate stays as it is, and nothing of the new one
// is left behind; when there is room, it is written.
func TestAFullDiskLeavesTheOldCertificate(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to mount a small disk")
	}
	o := options(t)
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", o.Dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(o.Dir, 0); err != nil {
			t.Error(err)
		}
	})
	o.Purpose = Serving
	if err := Provide(o); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(o.File())
	if err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(o.Dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	next, err := pki.SelfSigned(o.Subject, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.write(next); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write = %v", err)
	}
	after, err := os.ReadFile(o.File())
	if err != nil || string(after) != string(before) {
		t.Errorf("the certificate was touched: %v", err)
	}
	if entries, err := os.ReadDir(o.Dir); err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := errors.Join(os.Remove(filler), o.write(next)); err != nil {
		t.Error(err)
	}
}

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
