package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

func authority(t *testing.T) *Pair {
	t.Helper()
	ca, err := NewCA("test-ca", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func TestIssuedCertificatesVerify(t *testing.T) {
	ca := authority(t)
	server, err := ca.Issue(Subject{CommonName: "server", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Issue(Subject{CommonName: "alice", Organization: []string{"admins"}, Client: true}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Cert)
	serverCert, err := server.TLS()
	if err != nil {
		t.Fatal(err)
	}
	clientCert, err := client.TLS()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := serverCert.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1"}); err != nil {
		t.Errorf("server: %v", err)
	}
	clientAuth := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := clientCert.Leaf.Verify(clientAuth); err != nil {
		t.Errorf("client: %v", err)
	}
	if _, err := serverCert.Leaf.Verify(clientAuth); err == nil {
		t.Error("a serving certificate passes for a client's")
	}
	if got := clientCert.Leaf.Subject.Organization; len(got) != 1 || got[0] != "admins" {
		t.Errorf("groups are %v", got)
	}
}

func TestIssueByWhatIsNoAuthority(t *testing.T) {
	now := time.Now()
	pair, err := SelfSigned(Subject{CommonName: "x", Server: true}, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	served, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	if from := served.Leaf.NotBefore; from.After(now.Add(-59 * time.Minute)) {
		t.Errorf("a machine whose clock is an hour behind does not believe in it before %s", from)
	}
	if _, err := pair.Issue(Subject{CommonName: "y"}, time.Now(), time.Hour); err == nil {
		t.Error("a serving certificate signed another")
	}
}

func TestFilesAreSecret(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "a.crt"), filepath.Join(dir, "a.key")
	if err := authority(t).Save(cert, key); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(key)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %o", info.Mode().Perm())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("files left over: %v, %v", entries, err)
	}
}

func TestFresh(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "a.crt"), filepath.Join(dir, "a.key")
	now := time.Now()
	if fresh, err := Fresh(cert, key, now); fresh || err != nil {
		t.Fatalf("files that are not there: %t, %v", fresh, err)
	}
	if err := authority(t).Save(cert, key); err != nil {
		t.Fatal(err)
	}
	if fresh, err := Fresh(cert, key, now); !fresh || err != nil {
		t.Errorf("a new certificate: %t, %v", fresh, err)
	}
	if fresh, err := Fresh(cert, key, now.Add(2*time.Hour)); fresh || err != nil {
		t.Errorf("a certificate that will have expired: %t, %v", fresh, err)
	}
}

func TestReloaderTakesUpNewFilesAndKeepsGoodOnes(t *testing.T) {
	dir := t.TempDir()
	cert, key, err := ServingFiles("", "", dir, Subject{CommonName: "server", DNSNames: []string{"localhost"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	clock := testclock.NewFakeClock(time.Now())
	r, err := NewReloader(cert, key, clock)
	if err != nil {
		t.Fatal(err)
	}
	first := certificate(t, r)

	again, _, err := ServingFiles("", "", dir, Subject{CommonName: "server"}, time.Now())
	if err != nil || again != cert {
		t.Fatalf("the pair made earlier is not used: %s, %v", again, err)
	}

	if err := os.WriteFile(cert, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	clock.Step(time.Minute)
	if string(certificate(t, r)) != string(first) {
		t.Error("rubbish took the place of a good certificate")
	}
	renewed, err := SelfSigned(Subject{CommonName: "renewed", Server: true}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := renewed.Save(cert, key); err != nil {
		t.Fatal(err)
	}
	if string(certificate(t, r)) != string(first) {
		t.Error("the files are read on every handshake")
	}
	clock.Step(4 * time.Second) // as long as upstream's tests wait
	if string(certificate(t, r)) == string(first) {
		t.Error("the new certificate is not taken up")
	}
}

func certificate(t *testing.T, r *Reloader) []byte {
	t.Helper()
	c, err := r.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Certificate[0]
}

func TestUntimelyCertificates(t *testing.T) {
	cert, key, err := ServingFiles("", "", t.TempDir(), Subject{CommonName: "server"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for says, clock := range map[string]time.Time{
		"": time.Now(), "is not valid before": time.Now().AddDate(0, 0, -1), "has expired at": time.Now().AddDate(100, 0, 0),
	} {
		r, err := NewReloader(cert, key, testclock.NewFakeClock(clock))
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		r.Tell(func(err error) { told = append(told, err.Error()) })
		if said := strings.Join(told, "\n"); len(told) != min(1, len(says)) || !strings.Contains(said, says) {
			t.Errorf("at %s: %q, want one line with %q", clock, said, says)
		}
	}
}

// Files that were well again, even if they are the old ones, may go wrong anew.
func TestWhatIsWrongAgainIsToldAgain(t *testing.T) {
	cert, key, err := ServingFiles("", "", t.TempDir(), Subject{CommonName: "server"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReloader(cert, key, testclock.NewFakeClock(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	r.Tell(func(err error) { told = append(told, err.Error()) })
	for range 2 {
		for _, names := range [][2]string{{cert, cert + ".away"}, {cert + ".away", cert}} {
			if err := os.Rename(names[0], names[1]); err != nil {
				t.Fatal(err)
			}
			if _, err := r.GetClientCertificate(nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(told) != 2 {
		t.Errorf("of a file that was away twice: told %q", told)
	}
}

func TestServerTLSVerifiesClients(t *testing.T) {
	dir := t.TempDir()
	ca, other := authority(t), authority(t)
	caFile := filepath.Join(dir, "ca.crt")
	if err := WriteFile(caFile, ca.Cert); err != nil {
		t.Fatal(err)
	}
	cert, key, err := ServingFiles("", "", dir, Subject{CommonName: "server", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	reloader, err := NewReloader(cert, key, testclock.NewFakeClock(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	clock := testclock.NewFakeClock(time.Now())
	authorities, err := NewAuthorities("authority", caFile, clock)
	if err != nil {
		t.Fatal(err)
	}
	var refused []string
	authorities.Tell(func(err error) { refused = append(refused, err.Error()) })
	config := ServerTLS(reloader.GetCertificate)
	TakeClients(config, tls.VerifyClientCertIfGiven, authorities.PEM)
	for _, tc := range []struct {
		name   string
		issuer *Pair
		ok     bool
		file   []byte // the CA file's new content
	}{
		{"ours", ca, true, nil}, {"another authority's", other, false, nil}, {"none", nil, true, nil},
		{"another authority's, once it has taken over", other, true, other.Cert}, {"ours, then", ca, false, nil},
		{"another authority's, when the file is torn", other, true, []byte("torn")},
		{"another authority's, when it is still torn", other, true, []byte("torn")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.file != nil {
				if err := WriteFile(caFile, tc.file); err != nil {
					t.Fatal(err)
				}
				clock.Step(reloadEvery)
			}
			client := &tls.Config{InsecureSkipVerify: true}
			if tc.issuer != nil {
				pair, err := tc.issuer.Issue(Subject{CommonName: "c", Client: true}, time.Now(), time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				c, err := pair.TLS()
				if err != nil {
					t.Fatal(err)
				}
				client.Certificates = []tls.Certificate{c}
			}
			a, b := net.Pipe()
			defer a.Close()
			go func() {
				c := tls.Client(b, client)
				_ = c.Handshake()
				_, _ = c.Read(make([]byte, 1)) // with TLS 1.3 a refusal shows only here
				b.Close()
			}()
			err := tls.Server(a, config).Handshake()
			if (err == nil) != tc.ok {
				t.Errorf("handshake: %v", err)
			}
		})
	}
	if want := "changed files were rejected, and their previous content stays in use: authority " + caFile + ": no PEM certificate in it"; len(refused) != 1 ||
		refused[0] != want {
		t.Errorf("told %q, want once %q", refused, want)
	}
}

// A new certificate for an existing key verifies everything that was signed
// before.
func TestCertificatesForKeysThatAreThere(t *testing.T) {
	before := authority(t)
	leaf, err := before.Issue(Subject{CommonName: "x", DNSNames: []string{"x"}, Server: true}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	after, err := NewCAWithKey("test-ca", before.Key, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	again, err := after.IssueWithKey(Subject{CommonName: "x", DNSNames: []string{"x"}, Server: true}, leaf.Key, time.Now(), 2*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(after.Cert)
	for _, pair := range []*Pair{leaf, again} {
		cert, err := pair.TLS()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "x"}); err != nil {
			t.Error(err)
		}
		if got := SubjectOf(cert.Leaf); got.CommonName != "x" || !got.Server || got.Client {
			t.Errorf("the holder is %+v", got)
		}
	}
	if string(again.Key) != string(leaf.Key) {
		t.Error("the key is another")
	}
	if _, err := after.IssueWithKey(Subject{}, []byte("rubbish"), time.Now(), time.Hour); err == nil {
		t.Error("rubbish passes for a key")
	}
}

// Authorities that are in no file can't change, but a server can be given others at any time.
func TestFixedAuthorities(t *testing.T) {
	one, two := authority(t), authority(t)
	if _, err := FixedAuthorities("the cluster's", []byte("rubbish")); err == nil || !strings.Contains(err.Error(), "the cluster's: no PEM certificate") {
		t.Errorf("rubbish was taken: %v", err)
	}
	var shown *Authorities
	config := &tls.Config{}
	TakeClients(config, tls.RequestClientCert, func() []byte {
		if shown == nil {
			return nil
		}
		return shown.PEM()
	})
	for i, pair := range []*Pair{nil, one, two} {
		want := x509.NewCertPool()
		if pair != nil {
			var err error
			if shown, err = FixedAuthorities("the cluster's", pair.Cert); err != nil {
				t.Fatal(err)
			}
			want = shown.Pool()
		}
		now, err := config.GetConfigForClient(nil)
		if err != nil || now.ClientAuth != tls.RequestClientCert || now.ClientCAs == nil || !now.ClientCAs.Equal(want) {
			t.Errorf("at the connection %d, clients are not asked for certificates of the authorities that there are: %v", i, err)
		}
	}
}
