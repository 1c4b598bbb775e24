package compose_test

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kctl/test/harness"
)

// asDocumented brings everything up by the commands of docs/operations.md.
func (e *engine) asDocumented() {
	e.t.Helper()
	const under = "A control plane in containers"
	at := filepath.Join(harness.Root(), folder)
	settings, admin, backup := filepath.Join(at, ".env"), filepath.Join(at, "admin.kubeconfig"), filepath.Join(at, "backup")
	for _, file := range []string{settings, admin, backup} {
		if _, err := os.Stat(file); err == nil {
			e.t.Fatalf("%s is in the way: the test writes it, and removes it", file)
		}
		e.t.Cleanup(func() { _ = os.RemoveAll(file) })
	}
	e.page = harness.OpenPage(e.t, "docs/operations.md")
	script := "cd " + harness.Root() + "\n"
	for range 3 {
		script += e.page.Take(e.t, under)
	}
	e.must("bash", "-euo", "pipefail", "-c", script)
	kubeconfig, err := os.ReadFile(admin)
	if err != nil || !strings.Contains(string(kubeconfig), "https://cp.example.org:6443") {
		e.t.Errorf("the kubeconfig: %v\n%s", err, kubeconfig)
	}
	if info, err := os.Stat(admin); err != nil || info.Mode().Perm() != 0o600 {
		e.t.Errorf("others may read the kubeconfig: %v, %v", info.Mode(), err)
	}
}

// inFolder runs lines in the folder in which the reader of the page is by now.
func (e *engine) inFolder(script string) {
	e.t.Helper()
	e.must("bash", "-euo", "pipefail", "-c", "cd "+filepath.Join(harness.Root(), folder)+"\n"+script)
}

// renews renews all certificates by the commands of docs/operations.md.
func (e *engine) renews(t *testing.T) {
	t.Helper()
	before := e.served(t)
	e.inFolder(e.page.Take(t, "Renewing certificates"))
	harness.Eventually(t, time.Minute, func() error {
		if e.served(t) == before {
			return errors.New("an API server shows the old certificate")
		}
		return nil
	})
	e.allHealthy()
}

// restores makes a backup, loses everything after one more write, and restores
// the backup: what was written before it is there again, and nothing else.
func (e *engine) restores(t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	e.create(t, client, "before")
	const under = "Backup and restore in containers"
	e.inFolder(e.page.Take(t, under))
	e.create(t, client, "after")
	e.inFolder(e.page.Take(t, under))
	e.allHealthy()
	maps := client.CoreV1().ConfigMaps("default")
	if _, err := maps.Get(t.Context(), "before", metav1.GetOptions{}); err != nil {
		t.Errorf("what was written before the backup: %v", err)
	}
	if _, err := maps.Get(t.Context(), "after", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was written after the backup: %v", err)
	}
}

func (e *engine) create(t *testing.T, client *kubernetes.Clientset, name string) {
	t.Helper()
	_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// served is the serial number of the certificate behind the balancer.
func (e *engine) served(t *testing.T) string {
	t.Helper()
	raw, err := e.dial(t.Context(), "tcp", "127.0.0.1:6443")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	if err := conn.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}
