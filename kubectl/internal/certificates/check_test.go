package certificates

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/proto/pki"
	"kctl/proto/rest"
)

func swap(a, b string) func(d *Directory) error {
	return func(d *Directory) error {
		for _, end := range []string{".crt", ".key"} {
			for _, move := range [][2]string{{a, "x"}, {b, a}, {"x", b}} {
				if err := os.Rename(d.Path(move[0]+end), d.Path(move[1]+end)); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func lose(names ...string) func(d *Directory) error {
	return func(d *Directory) error {
		for _, name := range names {
			if err := os.Remove(d.Path(name)); err != nil {
				return err
			}
		}
		return nil
	}
}

func replaceAuthority(d *Directory) error {
	ca, err := pki.NewCA("kubernetes", time.Now(), time.Hour)
	if err != nil {
		return err
	}
	return ca.Save(d.Path("ca.crt"), d.Path("ca.key"))
}

// While an authority is being replaced, its file has the new one and, behind it, the
// one that signed what there is: nothing is wrong with that, and the new one signs
// what is renewed.
func TestAnAuthorityIsReplaced(t *testing.T) {
	d := made(t)
	before, err := os.ReadFile(d.Path("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := replaceAuthority(d); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(d.Path("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	trust := func(all ...[]byte) {
		t.Helper()
		if err := os.WriteFile(d.Path("ca.crt"), bytes.Join(all, nil), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Make(time.Now()); err != nil {
			t.Errorf("%d authorities are trusted: %v", len(all), err)
		}
	}
	trusted := func(name string) []byte {
		t.Helper()
		config, err := rest.LoadKubeconfig(d.Kubeconfig(name))
		if err != nil {
			t.Fatal(err)
		}
		return config.CAData
	}
	foreign, err := pki.NewCA("elsewhere", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(d.Kubeconfig("scheduler"))
	if err != nil {
		t.Fatal(err)
	}
	own = bytes.Replace(own, []byte(base64.StdEncoding.EncodeToString(before)), []byte(base64.StdEncoding.EncodeToString(foreign.Cert)), 1)
	if err := os.WriteFile(d.Kubeconfig("scheduler"), own, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, all := range [][][]byte{{after, before}, {after}} {
		trust(all...)
		if _, err := d.Renew(nil, time.Now()); err != nil {
			t.Fatal(err)
		}
		if got := trusted("admin"); !bytes.Equal(got, bytes.Join(all, nil)) {
			t.Errorf("with %d authorities in ca.crt, a renewed kubeconfig trusts %s", len(all), got)
		}
		if got := trusted("scheduler"); !bytes.Equal(got, foreign.Cert) {
			t.Errorf("a kubeconfig with an authority from elsewhere trusts %s", got)
		}
	}
	trust(after)
}

// Expiry is reported in advance, with what to do: of CAs, too, and of
// kubeconfigs that do not belong to the directory.
func TestCheckSaysWhatToDoAboutTheEnd(t *testing.T) {
	d := made(t)
	kubelet, err := d.Mint(User("kubelet", "system:node:n"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kubelet", "alice"} {
		if err := os.WriteFile(d.Kubeconfig(name), kubelet, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d = controlPlane(d.Dir)
	d.RenewBefore = 11 * 365 * 24 * time.Hour // the CAs', too
	findings, err := d.Check(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		want := fmt.Sprintf("; `kctl pki renew %s --dir %s` renews it", strings.TrimSuffix(f.Name, ".kubeconfig"), d.Dir)
		switch f.Name {
		case "ca", "etcd/ca", "front-proxy-ca":
			want = "; authorities are not renewed: "
		case "kubelet.kubeconfig":
			want = "; the kubelet renews it while it runs"
		case "alice.kubeconfig":
			want = "; `kctl pki kubeconfig` makes another"
		}
		if !f.Soon || len(f.Problems) != 1 || !strings.Contains(f.Problems[0], want) {
			t.Errorf("%s: %q, want %q", f.Name, f.Problems, want)
		}
	}
	// Not so early that nothing could be renewed.
	if _, err := d.Make(time.Now()); err != nil {
		t.Errorf("an authority that ends one day: %v", err)
	}
}

func TestCheckSaysWhatIsWrong(t *testing.T) {
	d := made(t)
	if err := os.Chmod(d.Path("apiserver.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(d.Path("sa.key"), 0o604); err != nil {
		t.Fatal(err)
	}
	// A kubelet's certificate of another CA.
	other, err := pki.NewCA("other", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := other.Issue(pki.Subject{CommonName: "system:node:a", Client: true}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	data, err := NewKubeconfig("https://x", other.Cert, "x", byCertificate(pair))
	if err != nil {
		t.Fatal(err)
	}
	if err := pki.WriteFile(d.Kubeconfig("kubelet"), data); err != nil {
		t.Fatal(err)
	}
	if data, err = NewKubeconfig("https://x", other.Cert, "x", ByToken("abcdef.0123456789abcdef")); err != nil {
		t.Fatal(err)
	}
	if err := pki.WriteFile(d.Kubeconfig("bootstrap-kubelet"), data); err != nil {
		t.Fatal(err)
	}
	findings, err := d.Check(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	problems := broken(findings)
	if len(problems) != 3 || !strings.Contains(problems[0], "apiserver.key can be read") ||
		!strings.Contains(problems[1], "kubelet.kubeconfig is not signed by") || !strings.Contains(problems[2], "sa.key can be read") {
		t.Errorf("problems: %q", problems)
	}
	if _, err := controlPlane(t.TempDir()).Check(time.Now()); err == nil {
		t.Error("an empty directory is good")
	}
}

// While the key of service account tokens is replaced, tokens of both are valid: the file
// of public keys holds both, and the signing key may be either.
func TestSeveralPublicKeysOfServiceAccounts(t *testing.T) {
	d := made(t)
	key, public := d.Path("sa.key"), d.Path("sa.pub")
	first, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	private, second, err := pki.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	write := func(path string, data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good := func(what string) {
		t.Helper()
		if findings, err := d.Check(time.Now()); err != nil || broken(findings) != nil {
			t.Errorf("%s: %q, %v", what, broken(findings), err)
		}
		if _, err := d.Make(time.Now()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	both := slices.Concat(first, second)
	write(public, both)
	good("the old key signs")
	write(key, private)
	good("the new key signs")
	if now, err := os.ReadFile(public); err != nil || !bytes.Equal(now, both) {
		t.Errorf("the public keys were changed: %v", err)
	}
	write(public, first)
	findings, err := d.Check(time.Now())
	if problems := broken(findings); err != nil || len(problems) != 1 || !strings.Contains(problems[0], "sa.pub does not hold the public half of") {
		t.Errorf("a key that is not in the file: %q, %v", problems, err)
	}
	if _, err := d.Make(time.Now()); err == nil || !strings.Contains(err.Error(), "sa.pub does not match the private key") {
		t.Errorf("a key that is not in the file: %v", err)
	}
}
