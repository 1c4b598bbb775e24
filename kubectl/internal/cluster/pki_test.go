package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"kctl/kubectl/internal/certificates"
	"kctl/proto/rest"
)

func TestPKIAndKubeconfigs(t *testing.T) {
	l := layout(t)
	s := &settings{NodeName: "node-1", Port: 6443}
	now := time.Now()
	if _, err := certificatesOf(l, s, netip.MustParseAddr("10.0.0.1")).Make(now); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]struct{ name, group string }{
		"admin": {"kubernetes-admin", "system:masters"}, "scheduler": {"system:kube-scheduler", ""},
		"controller-manager": {"system:kube-controller-manager", ""}, "kubelet": {"system:node:node-1", "system:nodes"},
	} {
		config, err := rest.LoadKubeconfig(l.Kubeconfig(user))
		if err != nil {
			t.Fatal(err)
		}
		tlsConfig, err := config.TLS()
		if err != nil {
			t.Fatal(err)
		}
		leaf := tlsConfig.Certificates[0].Leaf
		if leaf.Subject.CommonName != want.name || want.group != "" && !slices.Contains(leaf.Subject.Organization, want.group) {
			t.Errorf("%s is %v", user, leaf.Subject)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: tlsConfig.RootCAs, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("%s: %v", user, err)
		}
		info, err := os.Stat(l.Kubeconfig(user))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", user, info.Mode(), err)
		}
	}
	before := fingerprint(t, l, "apiserver")
	if _, err := certificatesOf(l, s, netip.MustParseAddr("10.0.0.1")).Make(now.Add(time.Hour)); err != nil || fingerprint(t, l, "apiserver") != before {
		t.Errorf("a valid certificate was replaced: %v", err)
	}
	if _, err := certificatesOf(l, s, netip.MustParseAddr("10.0.0.1")).Make(now.Add(certificates.Lasts - renewBefore + time.Hour)); err != nil ||
		fingerprint(t, l, "apiserver") == before {
		t.Errorf("a certificate that ends soon was kept: %v", err)
	}
}

// Everything that up made can be checked and renewed with no more than the
// directory.
func TestCertificatesOfACluster(t *testing.T) {
	l := layout(t)
	if d := Certificates(l.Dir); d != nil {
		t.Errorf("an empty directory has %+v", d)
	}
	s, err := chooseSettings(l, UpOptions{NodeName: "node-1", Port: 7443, Address: "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	made, err := certificatesOf(l, s, netip.MustParseAddr("10.9.0.1")).Make(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	before := fingerprint(t, l, "kubelet-server")
	d := Certificates(l.Dir)
	changes, err := d.Renew(nil, time.Now())
	if want := len(made) - 3; err != nil || len(changes) != want { // two CAs, and the key of service accounts
		t.Errorf("renewed %v, %v, want %d", changes, err, want)
	}
	if fingerprint(t, l, "kubelet-server") == before {
		t.Error("the kubelet's serving certificate is the old one")
	}
	findings, err := d.Check(time.Now().Add(certificates.Lasts - renewBefore + time.Hour))
	for _, f := range findings {
		if certificate := f.Authority != f.Subject; err != nil || (len(f.Problems) == 1) != certificate || f.Soon != certificate {
			t.Errorf("%+v, %v", f, err)
		}
	}
	if len(findings) != len(made)-1 {
		t.Errorf("%d are looked at, of %d", len(findings), len(made)-1)
	}
}

// TestReachableByPods: the certificates cover all addresses that pods and other
// machines connect to.
func TestReachableByPods(t *testing.T) {
	for address, good := range map[string]bool{"": true, "192.0.2.1": true, "127.0.0.1": true, "127.0.0.2": false, "0.0.0.0": false, "::1": false, "host": false} {
		if err := (UpOptions{Port: 1, Address: address}).Validate(); (err == nil) != good {
			t.Errorf("--address=%q: %v", address, err)
		}
	}
	l := layout(t)
	s, err := chooseSettings(l, UpOptions{Port: 7443, NodeName: "n", Address: "192.0.2.1", Without: []string{Apiserver}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := certificatesOf(l, s, netip.MustParseAddr("10.0.0.1")).Make(time.Now()); err != nil {
		t.Fatal(err)
	}
	for name, hosts := range map[string][]string{
		"apiserver":      {"127.0.0.1", "192.0.2.1", "10.0.0.1", "kubernetes.default.svc", "n"},
		"kubelet-server": {"127.0.0.1", "192.0.2.1", "n"},
	} {
		pair, err := tls.LoadX509KeyPair(l.PKI(name+".crt"), l.PKI(name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range hosts {
			if err := pair.Leaf.VerifyHostname(host); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	all, err := programs(l, s, UpOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for part, flags := range map[string][]string{
		Apiserver: {"--bind-address=0.0.0.0", "--advertise-address=192.0.2.1"},
		Kubelet:   {"--node-ip=192.0.2.1", "--address=192.0.2.1"},
	} {
		for _, flag := range flags {
			if !slices.Contains(all[part].args, flag) {
				t.Errorf("%s is started without %s: %v", part, flag, all[part].args)
			}
		}
	}
}

func TestServiceAddress(t *testing.T) {
	for flags, want := range map[string]string{
		"": "10.0.0.1",
		"-v=4 --service-cluster-ip-range=10.96.0.0/12":                                  "10.96.0.1",
		"--service-cluster-ip-range 10.96.7.0/16 --event-ttl=2h":                        "10.96.0.1",
		"--service-cluster-ip-range=10.1.0.0/16 --service-cluster-ip-range=10.2.0.0/16": "10.2.0.1",
	} {
		if got, err := serviceAddress(flags); err != nil || got.String() != want {
			t.Errorf("%q: %s, %v", flags, got, err)
		}
	}
	for _, flags := range []string{"--service-cluster-ip-range=ten", "'open"} {
		if got, err := serviceAddress(flags); err == nil {
			t.Errorf("%q: %s", flags, got)
		}
	}
}

func fingerprint(t *testing.T, l Layout, name string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(l.PKI(name+".crt"), l.PKI(name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf.SerialNumber.String()
}
