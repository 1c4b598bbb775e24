package operations_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kctl/test/harness"
)

var renews = regexp.MustCompile(`kctl pki renew .*`)

// TestEtcdsAuthorityIsReplaced replaces etcd's authority as docs/operations.md says: each write is accepted, and whoever has
// a certificate of the old authority is refused in the end. Members start slowly: the long tests have three.
func TestEtcdsAuthorityIsReplaced(t *testing.T) {
	t.Parallel()
	count := 1
	if os.Getenv("KCTL_LONG") != "" {
		count = 3
	}
	page, work, dir := harness.OpenPage(t, "docs/operations.md"), t.TempDir(), t.TempDir()
	shell := func(script string) {
		t.Helper()
		cmd := exec.Command("sh", "-euc", script)
		cmd.Dir, cmd.Env = work, append(os.Environ(), "PATH="+harness.Bin(t)+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	step := func() {
		t.Helper()
		script := strings.ReplaceAll(page.Take(t, "etcd's authority"), "/etc/kctl", dir)
		shell(renews.ReplaceAllString(script, "$0 --dir "+dir))
	}
	shell("kctl pki init --dir " + dir + " --etcd-hosts=127.0.0.1")
	pki := filepath.Join(dir, "pki", "etcd")
	m := newMembers(t, count)
	for _, one := range m.all {
		one.client, one.peer = strings.Replace(one.client, "http:", "https:", 1), strings.Replace(one.peer, "http:", "https:", 1)
	}
	for kind, prefix := range map[string]string{"server": "", "peer": "peer-"} {
		m.flags = append(m.flags, "--"+prefix+"client-cert-auth", "--"+prefix+"trusted-ca-file="+pki+"/ca.crt",
			"--"+prefix+"cert-file="+pki+"/"+kind+".crt", "--"+prefix+"key-file="+pki+"/"+kind+".key")
	}
	m.start()
	client := filepath.Join(dir, "pki", "apiserver-etcd-client")
	s := harness.StartServer(t, "--etcd-servers="+m.endpoints(), "--etcd-cafile="+pki+"/ca.crt", "--etcd-certfile="+client+".crt", "--etcd-keyfile="+client+".key")
	current := func() tls.Certificate {
		now, err := tls.LoadX509KeyPair(pki+"/healthcheck-client.crt", pki+"/healthcheck-client.key")
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	restart := func() {
		for _, one := range m.all {
			m.stopOne(one)
			m.startOne(one)
			harness.Eventually(t, time.Minute, func() error { return healthy(one.client, current()) })
		}
		s.Stop()
		s.Start()
	}
	former := current()
	step()
	step()
	restart()
	write(t, s.Client(), "both-trusted")
	step()
	write(t, s.Client(), "new-signs")
	for who, certificate := range map[string]tls.Certificate{"old": former, "new": current()} {
		if err := healthy(m.all[0].client, certificate); err != nil {
			t.Errorf("while both are trusted, a client of the %s authority: %v", who, err)
		}
	}
	step()
	restart()
	write(t, s.Client(), "old-gone")
	for _, one := range m.all {
		if err := healthy(one.client, former); err == nil {
			t.Errorf("%s answers a client of the old authority", one.name)
		}
	}
}

// healthy asks a member for its health as a client with this certificate.
func healthy(url string, certificate tls.Certificate) error {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		Certificates: []tls.Certificate{certificate}, InsecureSkipVerify: true, // who asks is what is tested
	}}}
	answer, err := client.Get(url + "/health")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", answer.Status)
	}
	return nil
}
