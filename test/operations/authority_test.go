package operations_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"

	"kctl/test/harness"
)

// TestTheAuthorityIsReplaced replaces a running cluster's authority as docs/operations.md
// says: pods go on, and no program but the API server is restarted.
func TestTheAuthorityIsReplaced(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{})
	c.Create(harness.Pod("first", c.Shell(), "sleep", "3600"))
	c.AwaitRunning("first")
	page, work := harness.OpenPage(t, "docs/operations.md"), t.TempDir()
	step := func() {
		t.Helper()
		script := "set -e; cd " + work + "\n" + strings.ReplaceAll(page.Take(t, "Replacing an authority"), "/etc/kctl", c.Dir)
		script = renews.ReplaceAllString(script, "$0 --dir "+c.Dir)
		if r := c.Run("", "sh", "-c", script); r.Code != 0 {
			t.Fatalf("%s\n%s%s", script, r.Stdout, r.Stderr)
		}
	}
	kubelet, scheduler := c.PID("kubelet"), c.PID("scheduler")
	former, err := os.ReadFile(c.Kubeconfig("admin"))
	if err != nil {
		t.Fatal(err)
	}
	step()
	step()
	c.Restart("apiserver")
	awaitRootCertificates(t, c, 2)
	step()
	step()
	// Those who have not got so far yet would refuse what the new one has signed.
	c.Kctl("pki", "renew", "all", "--dir", c.Dir)
	authority := filepath.Join(work, "new-authority", "pki", "ca.crt")
	if signs(t, authority, filepath.Join(c.Dir, "pki", "apiserver.crt")) {
		t.Error("the new authority signs before all trust it")
	}
	step()
	harness.Eventually(t, time.Minute, func() error { return servedBy(c, authority) })
	c.Restart("apiserver") // clients have to connect again
	c.Create(harness.Pod("second", c.Shell(), "sleep", "3600"))
	c.AwaitRunning("second")
	step()
	c.Restart("apiserver")
	awaitRootCertificates(t, c, 1)
	if err := publishedAuthorities(t, c, 2); err != nil {
		t.Error(err)
	}
	step()
	harness.Eventually(t, time.Minute, func() error { return publishedAuthorities(t, c, 1) })
	c.Create(harness.Pod("third", c.Shell(), "sleep", "3600"))
	c.AwaitRunning("third")
	c.Kctl("exec", "third", "--", "echo", "reached")
	if now := [2]int{c.PID("kubelet"), c.PID("scheduler")}; now != [2]int{kubelet, scheduler} {
		t.Errorf("the kubelet and the scheduler were restarted: %d and %d, then %v", kubelet, scheduler, now)
	}
	old := filepath.Join(work, "old.kubeconfig")
	if err := os.WriteFile(old, former, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := c.KctlFails("--kubeconfig="+old, "get", "pods"); !strings.Contains(out, "certificate signed by unknown authority") {
		t.Errorf("with a kubeconfig of the old authority: %s", out)
	}
	if restarts := c.AwaitRunning("first").Status.ContainerStatuses[0].RestartCount; restarts != 0 {
		t.Errorf("the first pod was restarted %d times", restarts)
	}
}

// signs reports whether an authority has signed a certificate.
func signs(t *testing.T, authority, certificate string) bool {
	t.Helper()
	var both []*x509.Certificate
	for _, file := range []string{authority, certificate} {
		all, err := certutil.CertsFromFile(file)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, all[0])
	}
	return both[1].CheckSignatureFrom(both[0]) == nil
}

// awaitRootCertificates waits until pods are told of so many authorities.
func awaitRootCertificates(t *testing.T, c *harness.Cluster, want int) {
	t.Helper()
	harness.Eventually(t, time.Minute, func() error {
		published, err := c.Client().CoreV1().ConfigMaps("default").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := strings.Count(published.Data["ca.crt"], "BEGIN CERTIFICATE"); got != want {
			return fmt.Errorf("pods are told of %d authorities, not of %d", got, want)
		}
		return nil
	})
}

// publishedAuthorities tells whether aggregated servers are told of so many authorities of clients.
func publishedAuthorities(t *testing.T, c *harness.Cluster, want int) error {
	t.Helper()
	published, err := c.Client().CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if got := strings.Count(published.Data["client-ca-file"], "BEGIN CERTIFICATE"); got != want {
		return fmt.Errorf("aggregated servers are told of %d authorities, not of %d", got, want)
	}
	return nil
}

// servedBy tells whether the API server shows a certificate of this authority only.
func servedBy(c *harness.Cluster, authority string) error {
	trusted, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(trusted) {
		return errors.New("no authority is in " + authority)
	}
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.Port), &tls.Config{RootCAs: roots})
	if err != nil {
		return err
	}
	return conn.Close()
}
