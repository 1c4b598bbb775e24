package twins_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/pki"
	"kctl/test/harness"
)

// rights lets the user "monitor", and a service account of this name, read metrics.
const rights = `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: monitor}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: monitors}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:monitoring"}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: monitor}
- {kind: ServiceAccount, name: monitor, namespace: default}
`

// call is who asks a scheduler, and what they are answered for the paths of asked.
type call struct {
	certificate *tls.Certificate
	header      http.Header
	want        [4]int
}

// asked are paths: open to all, of metrics, of one check, and one for administrators alone.
var asked = [4]string{"/healthz", "/metrics", "/livez/ping", "/configz"}

// TestWhoMayAskTheScheduler has our scheduler and upstream's run with the flags of kubeadm's
// manifest, and asks both the same, with our API server and with upstream's.
func TestWhoMayAskTheScheduler(t *testing.T) {
	upstream := harness.Upstream(t, "kube-scheduler", "kube-apiserver", "kube-controller-manager")
	etcd := harness.StartEtcd(t)
	none := []string{"scheduler", "kubelet", "containerd", "registry"}
	c := harness.Start(t, harness.Options{Without: none, Flags: []string{"--etcd-servers=" + etcd.URL}})
	c.KctlInput(rights, "create", "-f", "-")
	t.Run("our API server", func(t *testing.T) { askBoth(t, c.In(t), upstream) })

	c.Signal("apiserver", syscall.SIGTERM)
	a := &apiservers{scene: &scene{t: t, c: c}, upstream: upstream, args: append(apiserverFlags(c, etcd.URL),
		"--requestheader-client-ca-file="+filepath.Join(c.Dir, "pki", "front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-")}
	a.startTheirs()
	t.Run("upstream's API server", func(t *testing.T) { askBoth(t, c.In(t), upstream) })

	for _, server := range a.theirs {
		server.stop()
	}
	t.Run("no API server", func(t *testing.T) { askWithoutServer(t, c.In(t), upstream) })
}

// askWithoutServer has both schedulers start without knowing whom the cluster trusts: only health
// is there, or, if they must know, they end.
func askWithoutServer(t *testing.T, c *harness.Cluster, upstream string) {
	for name, binary := range map[string]string{"ours": c.Bin("scheduler"), "upstream's": filepath.Join(upstream, "kube-scheduler")} {
		port := harness.FreePort(t)
		startTwin(t, c, binary, kubeadmFlags(c, port)...).until(func() error {
			return call{want: [4]int{200, 500, 500, 500}}.differs(port)
		})
		bad := call{header: http.Header{"Authorization": {"Bearer some"}}, want: [4]int{401, 401, 401, 401}}
		if err := bad.differs(port); err != nil {
			t.Errorf("%s, a token: %v", name, err)
		}
		strict := startTwin(t, c, binary, append(kubeadmFlags(c, harness.FreePort(t)), "--authentication-tolerate-lookup-failure=false")...)
		select {
		case <-strict.done:
			if code := strict.cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("%s ends with the code %d", name, code)
			}
		case <-time.After(patience):
			t.Errorf("%s goes on, though it must know whom the cluster trusts", name)
		}
	}
}

// kubeadmFlags are those of kubeadm's manifest.
func kubeadmFlags(c *harness.Cluster, port int) []string {
	kubeconfig := c.Kubeconfig("scheduler")
	return []string{
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig, "--kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", "--leader-elect=true", fmt.Sprintf("--secure-port=%d", port),
	}
}

// askBoth asks both schedulers of a cluster the same, and whom the cluster trusts only later.
func askBoth(t *testing.T, c *harness.Cluster, upstream string) {
	ports := map[string]int{}
	for name, binary := range map[string]string{"ours": c.Bin("scheduler"), "upstream's": filepath.Join(upstream, "kube-scheduler")} {
		ports[name] = harness.FreePort(t)
		startTwin(t, c, binary, kubeadmFlags(c, ports[name])...)
	}
	added, err := pki.NewCA("added", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	later := call{certificate: client(t, added, pki.Subject{CommonName: "monitor"}, time.Now()), want: [4]int{401, 401, 401, 401}}
	for name, port := range ports {
		known := calls(t, c)
		harness.Eventually(t, patience, func() error { // until it has started
			return known["a client"].differs(port)
		})
		for who, call := range known {
			if err := call.differs(port); err != nil {
				t.Errorf("%s, %s: %v", name, who, err)
			}
		}
		if err := later.differs(port); err != nil {
			t.Errorf("%s, of an authority that is not there yet: %v", name, err)
		}
	}
	trustToo(t, c, added)
	later.want = [4]int{200, 200, 200, 403}
	for name, port := range ports {
		harness.Eventually(t, patience, func() error {
			if err := later.differs(port); err != nil {
				return fmt.Errorf("%s, of an authority that was added: %w", name, err)
			}
			return nil
		})
	}
}

// trustToo adds an authority of clients to those that the cluster publishes.
func trustToo(t *testing.T, c *harness.Cluster, added *pki.Pair) {
	t.Helper()
	maps := c.Client().CoreV1().ConfigMaps("kube-system")
	harness.Eventually(t, patience, func() error {
		published, err := maps.Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
		if err != nil {
			return err
		}
		published.Data["client-ca-file"] += string(added.Cert)
		_, err = maps.Update(t.Context(), published, metav1.UpdateOptions{})
		return err
	})
}

// authorityOf is one of the authorities that kctl made for the cluster.
func authorityOf(t *testing.T, c *harness.Cluster, name string) *pki.Pair {
	t.Helper()
	cert, err := os.ReadFile(filepath.Join(c.Dir, "pki", name+".crt"))
	key, err2 := os.ReadFile(filepath.Join(c.Dir, "pki", name+".key"))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return &pki.Pair{Cert: cert, Key: key}
}

// client is a certificate, good for ten minutes, of somebody.
func client(t *testing.T, authority *pki.Pair, subject pki.Subject, from time.Time) *tls.Certificate {
	t.Helper()
	subject.Client = !subject.Server
	pair, err := authority.Issue(subject, from, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return &certificate
}

// calls are by all kinds of people, good and bad.
func calls(t *testing.T, c *harness.Cluster) map[string]call {
	t.Helper()
	clients, proxies, now := authorityOf(t, c, "ca"), authorityOf(t, c, "front-proxy-ca"), time.Now()
	another, err := pki.NewCA("another", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	monitor, somebody, proxy := pki.Subject{CommonName: "monitor"}, pki.Subject{CommonName: "somebody"}, pki.Subject{CommonName: "front-proxy-client"}
	token := func(account string) http.Header {
		answer, err := c.Client().CoreV1().ServiceAccounts("default").CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return http.Header{"Authorization": {"Bearer " + answer.Status.Token}}
	}
	bad, asMonitor := http.Header{"Authorization": {"Bearer bad"}}, http.Header{"X-Remote-User": {"monitor"}}
	// What each kind of people may see.
	all, metrics, health, nothing := [4]int{200, 200, 200, 200}, [4]int{200, 200, 200, 403}, [4]int{200, 403, 403, 403}, [4]int{401, 401, 401, 401}
	return map[string]call{
		"nobody":                  {want: health},
		"basic authentication":    {header: http.Header{"Authorization": {"Basic bW9uaXRvcjp4"}}, want: health},
		"a client":                {certificate: client(t, clients, monitor, now), want: metrics},
		"a client without rights": {certificate: client(t, clients, somebody, now), want: health},
		"an administrator": {certificate: client(t, clients, pki.Subject{CommonName: "root", Organization: []string{"system:masters"}}, now),
			want: all},
		"a client of another authority":  {certificate: client(t, another, monitor, now), want: nothing},
		"a client whose time is over":    {certificate: client(t, clients, monitor, now.Add(-time.Hour)), want: nothing},
		"a server":                       {certificate: client(t, clients, pki.Subject{CommonName: "monitor", Server: true}, now), want: nothing},
		"a client without a name":        {certificate: client(t, clients, pki.Subject{Organization: []string{"system:masters"}}, now), want: nothing},
		"a token":                        {header: token("monitor"), want: metrics},
		"a token without rights":         {header: token("default"), want: health},
		"a bad token":                    {header: bad, want: nothing},
		"a bad token, but a certificate": {certificate: client(t, clients, monitor, now), header: bad, want: metrics},
		"a token, but a bad certificate": {certificate: client(t, another, somebody, now), header: token("monitor"), want: metrics},
		"a proxy":                        {certificate: client(t, proxies, proxy, now), header: asMonitor, want: metrics},
		"a proxy, for an administrator": {certificate: client(t, proxies, proxy, now),
			header: http.Header{"X-Remote-User": {"root"}, "X-Remote-Group": {"system:masters"}}, want: all},
		"a proxy, for somebody": {certificate: client(t, proxies, proxy, now), header: http.Header{"X-Remote-User": {"somebody"}, "X-Remote-Group": {"some"}},
			want: health},
		"a proxy, for nobody":          {certificate: client(t, proxies, proxy, now), want: nothing},
		"a proxy with another name":    {certificate: client(t, proxies, somebody, now), header: asMonitor, want: nothing},
		"a proxy of another authority": {certificate: client(t, another, proxy, now), header: asMonitor, want: nothing},
		"a proxy whose time is over":   {certificate: client(t, proxies, proxy, now.Add(-time.Hour)), header: asMonitor, want: nothing},
		"forged headers":               {header: asMonitor, want: health},
		"a client's forged headers":    {certificate: client(t, clients, somebody, now), header: asMonitor, want: health},
	}
}

// differs asks for all paths, and says which answer is not as wanted.
func (a call) differs(port int) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, // the schedulers' certificates are self-signed
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if a.certificate == nil {
				return &tls.Certificate{}, nil
			}
			return a.certificate, nil // whether the server asks for one of its authority or not
		},
	}}
	defer transport.CloseIdleConnections()
	for i, path := range asked {
		request, err := http.NewRequest(http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", port, path), nil)
		if err != nil {
			return err
		}
		if a.header != nil {
			request.Header = a.header.Clone()
		}
		answer, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != a.want[i] {
			return fmt.Errorf("%s: %d %.200s (%v), want %d", path, answer.StatusCode, body, err, a.want[i])
		}
		if (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) && answer.Header.Get("Content-Type") != "application/json" {
			return fmt.Errorf("%s: refused as %s", path, answer.Header.Get("Content-Type"))
		}
	}
	return nil
}
