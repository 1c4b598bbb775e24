package command

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kctl/proto/pki"
)

func TestExplainSchedule(t *testing.T) {
	scheduler := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path + " " + r.URL.Query().Get("pod") {
		case "/debug/explain default/web":
			fmt.Fprint(w, `{"pod":"default/web","queue":"unschedulable","rejectedBy":["NodeResourcesFit"],"message":"0/1 nodes are available: 1 Insufficient cpu.",
				"nodes":[{"name":"n1","total":0,"refusals":[{"plugin":"TaintToleration","reasons":["tainted"]},{"plugin":"NodeResourcesFit","reasons":["Insufficient cpu","Insufficient memory"]}],"lacks":[{"resource":"cpu","asked":"100","free":"1900m","of":"2"}],"taints":["k=v:NoSchedule"]}]}`)
		case "/debug/explain default/bound":
			fmt.Fprint(w,
				`{"pod":"default/bound","node":"n2","nodes":[{"name":"n2","total":275,"scores":[{"plugin":"A","score":75,"weight":1},{"plugin":"B","score":0,"weight":2},{"plugin":"C","score":100,"weight":2}]}]}`)
		case "/debug/explain default/gone":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"pods \"gone\" not found","details":{"name":"gone","kind":"pods"},"code":404}`)
		case "/debug/explain default/upstream":
			http.NotFound(w, r)
		default:
			http.Error(w, `user "x" may not get /debug/explain`, http.StatusForbidden)
		}
	}))
	defer scheduler.Close()
	for pod, want := range map[string]string{
		"pod/web": `pod default/web waits (unschedulable)
refused last by NodeResourcesFit
0/1 nodes are available: 1 Insufficient cpu.

NODE   SCORE   WHY
n1     -       TaintToleration: tainted; NodeResourcesFit: Insufficient cpu, Insufficient memory; taint: k=v:NoSchedule; cpu: 100 asked, 1900m of 2 free
`,
		"bound": `pod default/bound is on node n2; to a pod like it, the nodes would answer:

NODE   SCORE   WHY
n2     275     A 75×1; C 100×2
`,
	} {
		c := kctl(t, "http://127.0.0.1:1", "", "explain-schedule", pod, "--scheduler", scheduler.URL)
		c.want(t, 0)
		if c.out.String() != want {
			t.Errorf("%s:\n%s\nwant\n%s", pod, c.out.String(), want)
		}
	}
	kctl(t, "http://127.0.0.1:1", "", "explain-schedule", "other", "--scheduler", scheduler.URL).want(t, 1, "asking the scheduler at "+scheduler.URL,
		"may not get /debug/explain")
	kctl(t, "http://127.0.0.1:1", "", "explain-schedule", "gone", "--scheduler", scheduler.URL).want(t, 1, `pods "gone" not found`)
	kctl(t, "http://127.0.0.1:1", "", "explain-schedule", "upstream", "--scheduler", scheduler.URL).want(t, 1, "is not kctl's scheduler")
	kctl(t, "http://127.0.0.1:1", "", "explain-schedule", "web", "--scheduler", "http://127.0.0.1:1").want(t, 1,
		"error: no scheduler listens at http://127.0.0.1:1: use --scheduler if it listens elsewhere")
	kctl(t, "http://127.0.0.1:1", "", "explain-schedule", "pod", "gone", "--scheduler", scheduler.URL).want(t, 1, `pods "gone" not found`)
	kctl(t, "http://127.0.0.1:1", "", "explain-schedule", "node", "gone", "--scheduler", scheduler.URL).want(t, 1, "exactly one NAME is required, got 2")
	kctl(t, "http://127.0.0.1:1", "", "explain-schedule", "node/x").want(t, 1, `"node/x" is not a pod`)
}

// A scheduler whose certificate has expired is not somebody else. It is not its certificate
// that has to be renewed where the authority has expired, or this machine's clock is wrong.
func TestExplainScheduleOfOneWithAnOldCertificate(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		authorityLasts, begins, lasts time.Duration
		want                          string
	}{
		{100 * time.Hour, -2 * time.Hour, time.Hour, `"kctl pki renew scheduler-server" on its machine, and "systemctl restart kctl-scheduler"`},
		{100 * time.Hour, -2 * time.Hour, 3 * time.Hour, "is not kctl's scheduler"},
		{100 * time.Hour, time.Hour, time.Hour, "check this machine's clock"},
		{time.Hour, -2 * time.Hour, 3 * time.Hour, `has expired and must be replaced: see "Replacing an authority"`},
	} {
		ca, err := pki.NewCA("ca", now.Add(-3*time.Hour), test.authorityLasts)
		if err != nil {
			t.Fatal(err)
		}
		authority := filepath.Join(t.TempDir(), "ca.crt")
		if err := os.WriteFile(authority, ca.Cert, 0o600); err != nil {
			t.Fatal(err)
		}
		issued, err := ca.Issue(pki.Subject{CommonName: "scheduler", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true}, now.Add(test.begins), test.lasts)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := issued.TLS()
		if err != nil {
			t.Fatal(err)
		}
		scheduler := httptest.NewUnstartedServer(http.NotFoundHandler())
		scheduler.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
		scheduler.StartTLS()
		defer scheduler.Close()
		kctl(t, "https://127.0.0.1:1", "", "explain-schedule", "web", "--scheduler", scheduler.URL, "--certificate-authority", authority).want(t, 1, test.want)
	}
}
