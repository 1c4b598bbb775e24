package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kctl/proto/rest"
)

func made(t *testing.T) *Directory {
	t.Helper()
	d := controlPlane(t.TempDir(), "lb.example.org", "192.0.2.7")
	if _, err := d.Make(time.Now()); err != nil {
		t.Fatal(err)
	}
	return d
}

func controlPlane(dir string, hosts ...string) *Directory {
	return &Directory{Dir: dir, Entries: ControlPlane(hosts, Hosts{"etcd-1"}), Server: "https://lb.example.org:6443"}
}

// content are all files with their content.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func same(a, b map[string]string) (differ []string) {
	for path := range a {
		if a[path] != b[path] {
			differ = append(differ, path)
		}
	}
	for path := range b {
		if _, ok := a[path]; !ok {
			differ = append(differ, path)
		}
	}
	return differ
}

func TestMakeMakesWhatProgramsNeed(t *testing.T) {
	d := made(t)
	verify := func(authority, name, host string, usage x509.ExtKeyUsage) {
		t.Helper()
		pair, err := tls.LoadX509KeyPair(d.Path(name+".crt"), d.Path(name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		ca, err := os.ReadFile(d.Path(authority + ".crt"))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca)
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, host := range []string{"lb.example.org", "192.0.2.7", "127.0.0.1", "localhost"} {
		verify("ca", "apiserver", host, x509.ExtKeyUsageServerAuth)
	}
	verify("ca", "apiserver-kubelet-client", "", x509.ExtKeyUsageClientAuth)
	verify("front-proxy-ca", "front-proxy-client", "", x509.ExtKeyUsageClientAuth)
	for _, name := range []string{"etcd/server", "etcd/peer"} {
		verify("etcd/ca", name, "etcd-1", x509.ExtKeyUsageServerAuth)
		verify("etcd/ca", name, "127.0.0.1", x509.ExtKeyUsageClientAuth)
	}
	verify("etcd/ca", "apiserver-etcd-client", "", x509.ExtKeyUsageClientAuth)
	verify("etcd/ca", "etcd/healthcheck-client", "", x509.ExtKeyUsageClientAuth)
	for path := range content(t, d.Dir) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if secret := !strings.HasSuffix(path, ".crt") && !strings.HasSuffix(path, ".pub"); secret && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
	}
	config, err := rest.LoadKubeconfig(d.Kubeconfig("scheduler"))
	if err != nil || config.Host != "https://lb.example.org:6443" {
		t.Errorf("the scheduler's kubeconfig: %v, %v", config, err)
	}
}

func TestMakeKeepsWhatIsGood(t *testing.T) {
	d := made(t)
	before := content(t, d.Dir)
	changes, err := controlPlane(d.Dir).Make(time.Now().Add(time.Hour)) // fewer names are requested
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c.Done != Kept {
			t.Errorf("%s: %s", c.File, c.Done)
		}
	}
	if differ := same(before, content(t, d.Dir)); len(differ) > 0 {
		t.Errorf("changed: %v", differ)
	}
}

// After a crash between any two writes, what is missing is made, and what
// existed is kept.
func TestMakeCompletesWhatWasCutShort(t *testing.T) {
	d := made(t)
	before := content(t, d.Dir)
	for path := range before {
		for _, emptied := range []bool{false, true} {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if emptied {
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := d.Make(time.Now())
			switch {
			case filepath.Base(path) == "sa.key":
				if err == nil || !strings.Contains(err.Error(), "exists without its private key") {
					t.Errorf("without %s: %v", path, err)
				}
			case err != nil:
				t.Errorf("without %s: %v", path, err)
			default:
				if findings, err := d.Check(time.Now()); err != nil || broken(findings) != nil {
					t.Errorf("without %s: %v, %v", path, broken(findings), err)
				}
			}
			restore(t, before)
		}
	}
}

func restore(t *testing.T, files map[string]string) {
	t.Helper()
	for path, data := range files {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func broken(findings []Finding) (problems []string) {
	for _, f := range findings {
		problems = append(problems, f.Problems...)
	}
	return problems
}

func TestMakeAddsNames(t *testing.T) {
	d := made(t)
	changes, err := controlPlane(d.Dir, "other.example.org").Make(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if renewed := strings.HasPrefix(c.Done, Renewed); renewed != (c.File == d.Path("apiserver.crt") || c.File == d.Path("scheduler-server.crt")) {
			t.Errorf("%s: %s", c.File, c.Done)
		}
	}
	pair, err := tls.LoadX509KeyPair(d.Path("apiserver.crt"), d.Path("apiserver.key"))
	if err != nil || !slices.Contains(pair.Leaf.DNSNames, "other.example.org") || !slices.Contains(pair.Leaf.DNSNames, "lb.example.org") {
		t.Errorf("names %v, %v", pair.Leaf.DNSNames, err)
	}
}

// What people have to look at is named, and nothing is changed.
func TestMakeRefusesWhatMakesNoSense(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(d *Directory) error
		says   string
	}{
		"swapped keys":  {func(d *Directory) error { return os.Rename(d.Path("etcd/server.key"), d.Path("apiserver.key")) }, "apiserver.key is not the key of"},
		"swapped pairs": {swap("front-proxy-client", "apiserver-kubelet-client"), "is not signed by"},
		"swapped users": {func(d *Directory) error { return os.Rename(d.Kubeconfig("scheduler"), d.Kubeconfig("admin")) },
			`is the certificate of "system:kube-scheduler", not of "kubernetes-admin"`},
		"rubbish": {func(d *Directory) error { return os.WriteFile(d.Path("apiserver.crt"), []byte("x"), 0o600) },
			"no PEM certificate in it; put the right one back, or move it away and run `kctl pki init --dir "},
		"rubbish authority": {func(d *Directory) error { return os.WriteFile(d.Path("ca.crt"), []byte("x"), 0o600) },
			"; put the right one back, or move it and all that the authority signed away and run `kctl pki init --dir "},
		"no kubeconfig": {func(d *Directory) error { return os.WriteFile(d.Kubeconfig("admin"), []byte("x"), 0o600) },
			"; put the right one back, or move it away and run `kctl pki init --dir "},
		"rubbish kubeconfig":  {func(d *Directory) error { return os.WriteFile(d.Kubeconfig("admin"), []byte("{"), 0o600) }, "admin.kubeconfig"},
		"lost authority":      {func(d *Directory) error { return os.Remove(d.Path("ca.key")) }, ""},
		"lost whole":          {lose("ca.key", "ca.crt"), "exists without"},
		"another authority's": {replaceAuthority, "is not signed by"},
		"directory":           {func(d *Directory) error { _ = os.Remove(d.Path("sa.pub")); return os.Mkdir(d.Path("sa.pub"), 0o700) }, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			d := made(t)
			if err := test.damage(d); err != nil {
				t.Fatal(err)
			}
			before := content(t, d.Dir)
			_, err := d.Make(time.Now())
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("got %v, want %q", err, test.says)
			}
			if differ := same(before, content(t, d.Dir)); len(differ) > 0 {
				t.Errorf("changed: %v", differ)
			}
			if err != nil && strings.Contains(err.Error(), "PRIVATE KEY") {
				t.Error("a key is shown")
			}
		})
	}
}

// A command line that is advised can be taken as it is, whatever the directory's name.
func TestAdviceIsForAShell(t *testing.T) {
	d := &Directory{Dir: "/srv/my cluster"}
	if got, want := d.initial(), "`kctl pki init --dir '/srv/my cluster'`"; got != want {
		t.Errorf("advised %s, want %s", got, want)
	}
	if got, want := d.remedy(Entry{Name: "admin", Authority: Authority}), "`kctl pki renew admin --dir '/srv/my cluster'` renews it"; got != want {
		t.Errorf("advised %s, want %s", got, want)
	}
}

// What a user may not read need not be damaged.
func TestWhatMayNotBeReadIsNoDamage(t *testing.T) {
	s := &state{entry: Entry{Authority: Authority}}
	if said := (certificateFiles{}).instead(s, "it", &fs.PathError{Op: "open", Path: "x.key", Err: syscall.EACCES}); said != "" {
		t.Errorf("said %q", said)
	}
}

func TestRenewKeepsKeysAndNames(t *testing.T) {
	d := made(t)
	if err := os.Chmod(d.Kubeconfig("scheduler"), 0o640); err != nil {
		t.Fatal(err)
	}
	before := content(t, d.Dir)
	later := time.Now().Add(400 * 24 * time.Hour) // all have expired
	again := controlPlane(d.Dir)
	findings, err := again.Check(later)
	if err != nil || len(broken(findings)) != 10 {
		t.Errorf("expired: %v, %v", broken(findings), err)
	}
	changes, err := again.Renew(nil, later)
	if err != nil || len(changes) != 10 {
		t.Fatalf("renewed %v, %v", changes, err)
	}
	if findings, err = controlPlane(d.Dir, "lb.example.org").Check(later); err != nil || broken(findings) != nil {
		t.Errorf("renewed: %v, %v", broken(findings), err)
	}
	for _, path := range same(before, content(t, d.Dir)) {
		if strings.HasSuffix(path, ".key") || strings.HasSuffix(path, "ca.crt") {
			t.Errorf("%s was changed", path)
		}
	}
	if info, err := os.Stat(d.Kubeconfig("scheduler")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the kubeconfig's mode is %v, %v", info.Mode(), err)
	}
	pair, err := tls.LoadX509KeyPair(d.Path("apiserver.crt"), d.Path("apiserver.key"))
	if err != nil || len(pair.Certificate) != 2 {
		t.Errorf("the API server's chain has %d certificates, %v", len(pair.Certificate), err)
	}
	if _, err := again.Renew([]string{"ca"}, later); err == nil || !strings.Contains(err.Error(), `no certificate "ca" can be renewed`) {
		t.Errorf("renew the authority: %v", err)
	}
	if changes, err := again.Renew([]string{"apiserver"}, later); err != nil || len(changes) != 1 {
		t.Errorf("renew one: %v, %v", changes, err)
	}
}

func TestHashesAreKubeadms(t *testing.T) {
	// openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | sha256sum
	const ca = `-----BEGIN CERTIFICATE-----
MIIBgDCCASWgAwIBAgIUc5gaPBo21ni0rm3s+lGisz2k1ygwCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKa3ViZXJuZXRlczAeFw0yNjExMjEyMTQwMDJaFw0zNjExMTgy
MTQwMDJaMBUxEzARBgNVBAMMCmt1YmVybmV0ZXMwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASzySA4JMIOC9bdz70COGXoKbNtD2p9XvsoSSceN+C/mJj0bnIh4mID
SvlqLsHqAx65rPf7H0MUSVrDGWcQDhbKo1MwUTAdBgNVHQ4EFgQUXNp7sYmKG4tA
bHfgVR49evvReMMwHwYDVR0jBBgwFoAUXNp7sYmKG4tAbHfgVR49evvReMMwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEA7gJo2J2nqPg8+y+KuFda
kf3tFO69m/c2X6dNpvXTDo8CIQD1rQnx1zYlA43kVPbxoGWP5S3yQMCqnUTNjsWB
Dqr3Jw==
-----END CERTIFICATE-----
`
	hashes, err := Hashes([]byte(ca))
	if err != nil || len(hashes) != 1 || hashes[0] != "sha256:a496d4a6ac54b38137d73a9de99fda902d178c2dced2d9c2ad8902f71d4cc465" {
		t.Errorf("got %v, %v", hashes, err)
	}
	if _, err := Hashes([]byte("rubbish")); err == nil {
		t.Error("rubbish has a hash")
	}
}

func TestMintGivesAKubeconfig(t *testing.T) {
	d := made(t)
	data, err := d.Mint(User("alice", "alice", "developers"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := rest.LoadKubeconfig(file)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := config.TLS()
	if err != nil || shown.Certificates[0].Leaf.Subject.String() != "CN=alice,O=developers" {
		t.Errorf("got %v, %v", shown, err)
	}
	d.Server = ""
	if _, err := d.Mint(User("alice", "alice"), time.Now()); err == nil {
		t.Error("a kubeconfig for no server")
	}
}
