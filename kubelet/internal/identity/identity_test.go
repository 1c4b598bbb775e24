package identity

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/certificate"
	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/netnstest"
	"kctl/proto/eventually"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

func find(t *testing.T, c *config.Config) *Identity {
	t.Helper()
	i, err := Find(c, clock.RealClock{}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// A node's name is the one given, or the machine's, as an object may be named.
func TestTheNodesName(t *testing.T) {
	c := config.New()
	c.NodeIP, c.NodeName = "192.0.2.1", "Node-1.Example"
	if got := find(t, c).NodeName; got != "node-1.example" {
		t.Errorf("the one given: %q", got)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	c.NodeName = ""
	if got := find(t, c).NodeName; got != strings.ToLower(host) {
		t.Errorf("the machine's, %q: %q", host, got)
	}
}

// A node's addresses are those given, or the one that this machine is reached by.
func TestTheNodesAddresses(t *testing.T) {
	c := config.New()
	for given, want := range map[string][]string{
		"192.0.2.1":             {"192.0.2.1"},
		"192.0.2.1,2001:db8::1": {"192.0.2.1", "2001:db8::1"},
	} {
		c.NodeIP = given
		if got := find(t, c).HostIPs(); !slices.Equal(got, want) {
			t.Errorf("%s: %q", given, got)
		}
	}
	c.NodeIP = ""
	if got := find(t, c).HostIPs(); len(got) != 1 || net.ParseIP(got[0]) == nil {
		t.Errorf("without one: %q", got)
	}
	c.NodeIP = "0.0.0.0"
	if _, err := Find(c, clock.RealClock{}, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "--node-ip: 0.0.0.0") {
		t.Errorf("a bad one: %v", err)
	}
}

// Where DHCP gives a machine another address, the node gets it, too. Without a route it keeps the one it had,
// as it does one that was given.
func TestTheNodesAddressChanges(t *testing.T) {
	netnstest.Inside(t, func() {
		ip := func(line string) { t.Helper(); runIP(t, line) }
		ip("link add uplink type bridge")
		ip("link set uplink up")
		ip("address add 192.0.2.1/24 dev uplink")
		ip("route add default dev uplink")
		c := config.New()
		found := find(t, c)
		c.NodeIP = "192.0.2.1"
		given := find(t, c)
		c.NodeIP = ""
		becomes := func(want string) {
			t.Helper()
			if got := found.FindHostIPs(); !slices.Equal(got, []string{want}) || !slices.Equal(found.HostIPs(), got) {
				t.Errorf("%q, and %q as last found, want %s", got, found.HostIPs(), want)
			}
			if got := fmt.Sprint(found.ServingIPs()); got != "["+want+"]" {
				t.Errorf("it is served at %s, want %s", got, want)
			}
		}
		becomes("192.0.2.1")
		ip("address del 192.0.2.1/24 dev uplink") // and its routes
		becomes("192.0.2.1")
		ip("address add 2001:db8::7/64 dev uplink nodad")
		ip("-6 route add default dev uplink")
		becomes("192.0.2.1")
		ip("address add 192.0.2.7/24 dev uplink")
		ip("route replace default dev uplink src 192.0.2.7")
		becomes("192.0.2.7")
		c.NodeIP = "192.0.2.1"
		if got := given.FindHostIPs(); !slices.Equal(got, []string{"192.0.2.1"}) {
			t.Errorf("an address that was given becomes %q", got)
		}
	})
}

// Where the kernel sends from addresses that it replaces every day, the node has the one that stays.
func TestTheNodesAddressIsNoTemporaryOne(t *testing.T) {
	netnstest.Inside(t, func() {
		runIP(t, "link add uplink type bridge")
		for setting, value := range map[string]string{"use_tempaddr": "2", "accept_dad": "0"} {
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/uplink/"+setting, []byte(value), 0o600); err != nil {
				t.Error(err)
			}
		}
		runIP(t, "link set uplink up")
		runIP(t, "address add 2001:db8:1::7/64 dev uplink nodad mngtmpaddr preferred_lft 86400 valid_lft 86400")
		runIP(t, "-6 route add default dev uplink")
		eventually.Holds(t, "the kernel sends from a temporary address", func() bool {
			return !strings.Contains(runIP(t, "-6 route get 2001:db8::1"), "src 2001:db8:1::7")
		})
		if got := find(t, config.New()).HostIPs(); !slices.Equal(got, []string{"2001:db8:1::7"}) {
			t.Errorf("the node has %q", got)
		}
	})
}

func runIP(t *testing.T, line string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(line)...).CombinedOutput()
	if err != nil {
		t.Errorf("ip %s: %v %s", line, err, out)
	}
	return string(out)
}

// The kubelet is reached by the node's addresses, and by the one that it listens on if that is one.
func TestServingIPs(t *testing.T) {
	c := config.New()
	c.NodeIP = "192.0.2.1,2001:db8::1"
	for address, want := range map[string]string{
		"0.0.0.0":   "[192.0.2.1 2001:db8::1]",
		"::":        "[192.0.2.1 2001:db8::1]",
		"192.0.2.1": "[192.0.2.1 2001:db8::1]",
		"127.0.0.1": "[127.0.0.1 192.0.2.1 2001:db8::1]",
	} {
		c.Serving.Address = address
		if got := fmt.Sprint(find(t, c).ServingIPs()); got != want {
			t.Errorf("listening on %s: %s", address, got)
		}
	}
}

// Both certificates are of the node's user, by which the API server knows its kubelet. Only the one to
// serve with says where that is.
func TestCertificatesAreOfTheNode(t *testing.T) {
	c := config.New()
	c.NodeName, c.NodeIP, c.CertDir = "n1", "192.0.2.1", "/pki"
	i := find(t, c)
	for purpose, o := range map[string]certificate.Options{"client": i.certificates(), "server": i.ServingCertificates()} {
		s := o.Subject
		if s.CommonName != "system:node:n1" || !slices.Equal(s.Organization, []string{"system:nodes"}) {
			t.Errorf("%s: of %s, %q", purpose, s.CommonName, s.Organization)
		}
		if want := "/pki/kubelet-" + purpose + "-current.pem"; o.File() != want {
			t.Errorf("%s: in %s", purpose, o.File())
		}
		serves := s.Server && slices.Equal(s.DNSNames, []string{"n1"}) && fmt.Sprint(s.IPs) == "[192.0.2.1]"
		if client := !s.Server && len(s.DNSNames)+len(s.IPs) == 0; serves != (purpose == "server") || client != (purpose == "client") {
			t.Errorf("%s: server %t, at %q and %s", purpose, s.Server, s.DNSNames, s.IPs)
		}
	}
}

// writeKubeconfig writes one for a client with a certificate of its own.
func writeKubeconfig(t *testing.T, dir string) (file string) {
	t.Helper()
	ca, err := pki.NewCA("ca", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Issue(pki.Subject{CommonName: "system:node:n1", Client: true}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
	if err := client.Save(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`{"kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],`+
		`"clusters":[{"name":"c","cluster":{"server":"https://192.0.2.9:6443"}}],`+
		`"users":[{"name":"u","user":{"client-certificate":%q,"client-key":%q}}]}`, certFile, keyFile)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The kubeconfig's certificate is used, or the one that is rotated, which begins as a copy of it. Where
// the kubeconfig is good, nobody is asked for a certificate.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	c := config.New()
	c.NodeIP, c.Kubeconfig, c.CertDir = "192.0.2.1", writeKubeconfig(t, dir), filepath.Join(dir, "pki")
	c.BootstrapKubeconfig = filepath.Join(dir, "none")
	for rotate, want := range map[bool]string{
		false: filepath.Join(dir, "client.crt"),
		true:  filepath.Join(dir, "pki", "kubelet-client-current.pem"),
	} {
		c.RotateCertificates = rotate
		cfg, err := find(t, c).Credentials(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(cfg.CertFile); err != nil || cfg.CertFile != want || cfg.Host != "https://192.0.2.9:6443" {
			t.Errorf("rotated: %t: %s for %s, %v", rotate, cfg.CertFile, cfg.Host, err)
		}
	}
}

// Credentials that aren't there are named by the flag that says where they are.
func TestMissingCredentialsAreNamed(t *testing.T) {
	c := config.New()
	c.NodeIP, c.Kubeconfig, c.CertDir = "192.0.2.1", filepath.Join(t.TempDir(), "none"), t.TempDir()
	for bootstrap, want := range map[string]string{
		"":                                 "--kubeconfig: ",
		filepath.Join(t.TempDir(), "none"): "--bootstrap-kubeconfig: ",
	} {
		c.BootstrapKubeconfig = bootstrap
		if _, err := find(t, c).Credentials(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("bootstrap by %q: %v", bootstrap, err)
		}
	}
}

// What keeps certificates valid runs for those that the API server is to sign.
func TestRotators(t *testing.T) {
	c := config.New()
	c.NodeIP, c.CertDir = "192.0.2.1", t.TempDir()
	client, err := rest.New(&rest.Config{Host: "https://192.0.2.9:6443"})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		client, serving bool
		want            []string
	}{
		{false, false, nil},
		{true, false, []string{"client certificate"}},
		{false, true, []string{"serving certificate"}},
		{true, true, []string{"client certificate", "serving certificate"}},
	} {
		c.RotateCertificates, c.ServerTLSBootstrap = one.client, one.serving
		var run []string
		find(t, c).RunRotators(client, prometheus.NewRegistry(), func(name string, _ func(context.Context) error) { run = append(run, name) })
		if !slices.Equal(run, one.want) {
			t.Errorf("%+v: %q", one, run)
		}
	}
}
