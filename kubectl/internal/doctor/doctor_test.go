package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientrest "k8s.io/client-go/rest"

	"kctl/proto/core"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// patient is an API server that is examined, and the doctor's view of it.
type patient struct {
	ca      *pki.Pair
	serving pki.Subject
	lasts   time.Duration
	handler http.HandlerFunc
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	ca, err := pki.NewCA("ca", time.Now(), 100*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return &patient{
		ca:      ca,
		lasts:   90 * 24 * time.Hour,
		handler: healthy,
		serving: pki.Subject{CommonName: "kube-apiserver", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true},
	}
}

func healthy(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/version":
		fmt.Fprint(w, `{"gitVersion":"v1.37.0"}`)
	case "/readyz":
		fmt.Fprint(w, "[+]ping ok\n[+]etcd ok\nreadyz check passed\n")
	default:
		fmt.Fprint(w, `{"items":[]}`)
	}
}

// server starts it.
func (p *patient) server(t *testing.T) *Server {
	t.Helper()
	pair, err := p.ca.Issue(p.serving, time.Now(), p.lasts)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(p.handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{shown}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return at(t, server.URL, p.ca.Cert)
}

func at(t *testing.T, url string, ca []byte) *Server {
	t.Helper()
	client, err := rest.New(&rest.Config{Host: url, CAData: ca, BearerToken: "the-secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.HTTP().CloseIdleConnections)
	return &Server{
		Config: &clientrest.Config{Host: url, TLSClientConfig: clientrest.TLSClientConfig{CAData: ca}},
		Client: client,
		Now:    time.Now,
		Warn:   30 * 24 * time.Hour,
	}
}

func find(t *testing.T, checks []Check, name string) Check {
	t.Helper()
	i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no check %s among %+v", name, checks)
	}
	return checks[i]
}

func TestServers(t *testing.T) {
	other := newPatient(t).ca
	answers := func(status int, header, body string) func(*patient) {
		return func(p *patient) {
			p.handler = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", header)
				w.WriteHeader(status)
				fmt.Fprint(w, body)
			}
		}
	}
	for name, test := range map[string]struct {
		change func(p *patient)
		after  func(s *Server)
		check  string
		want   Result
		says   string
	}{
		"well":               {nil, nil, "ready", OK, "including etcd"},
		"no nodes":           {nil, nil, "nodes", Warn, "there are none"},
		"expired":            {func(p *patient) { p.lasts = -time.Minute }, nil, "server-certificate", Fail, "expired at"},
		"expires soon":       {func(p *patient) { p.lasts = time.Hour }, nil, "server-certificate", Warn, "expires at"},
		"another authority":  {nil, func(s *Server) { s.Config.CAData = other.Cert }, "server-authority", Fail, "not signed by the kubeconfig's CA"},
		"another name":       {func(p *patient) { p.serving.IPs = nil }, nil, "server-authority", Fail, "is not for 127.0.0.1"},
		"not verified":       {nil, func(s *Server) { s.Config.Insecure = true }, "server-authority", Warn, "insecure-skip-tls-verify"},
		"a web page":         {answers(http.StatusOK, "text/html", "<html>"), nil, "api-server", Fail, "a web page"},
		"a proxy's error":    {answers(http.StatusBadGateway, "text/plain", "no"), nil, "api-server", Fail, "status 502"},
		"who are you?":       {answers(http.StatusUnauthorized, "application/json", "{}"), nil, "api-server", Fail, "authentication failed"},
		"etcd is gone":       {func(p *patient) { p.handler = withoutEtcd }, nil, "ready", Fail, "not ready: etcd"},
		"a key is lost":      {func(p *patient) { p.handler = holdingBack }, nil, "ready", Fail, "storage: held back: secrets"},
		"a day behind":       {nil, func(s *Server) { s.Now = func() time.Time { return time.Now().Add(24 * time.Hour) } }, "clock", Fail, "off from the server"},
		"lists are not ours": {func(p *patient) { p.handler = forbidden }, nil, "nodes", Warn, "not checked: Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t)
			if test.change != nil {
				test.change(p)
			}
			s := p.server(t)
			if test.after != nil {
				test.after(s)
			}
			checks := s.Checks(t.Context())
			if got := find(t, checks, test.check); got.Result != test.want || !strings.Contains(got.Detail, test.says) {
				t.Errorf("got %+v, want %s %q", got, test.want, test.says)
			}
			for _, c := range checks {
				if strings.Contains(c.Detail+c.Advice, "the-secret") {
					t.Errorf("a secret is shown: %+v", c)
				}
				if c.Result == Fail && c.Advice == "" {
					t.Errorf("nothing is said of what to do: %+v", c)
				}
			}
		})
	}
}

var (
	withoutEtcd = readiness(http.StatusInternalServerError, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n")
	holdingBack = readiness(http.StatusOK, "[+]storage ok, but held back: secrets\n[+]ping ok\n")
)

// readiness is a server that is well but for what it says of its readiness.
func readiness(status int, says string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			http.Error(w, says, status)
			return
		}
		healthy(w, r)
	}
}

// A server that answers no list is asked for one only.
func TestSilenceIsWaitedForOnce(t *testing.T) {
	p := newPatient(t)
	p.handler = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	s := p.server(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	got := s.checkCluster(ctx, "v1.37.0")
	if len(got) != 1 || got[0].Name != "nodes" || got[0].Result != Warn || !strings.Contains(got[0].Detail, "no answer within") {
		t.Errorf("got %+v", got)
	}
}

func forbidden(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/api") {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		return
	}
	healthy(w, r)
}

func TestServersThatAreNone(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	half := at(t, "https://"+listener.Addr().String(), nil)
	if got := find(t, half.Checks(ctx), "connection"); got.Result != Fail || !strings.Contains(got.Detail, "no TLS handshake within") {
		t.Errorf("half dead: %+v", got)
	}
	listener.Close()
	if got := find(t, half.Checks(t.Context()), "connection"); got.Result != Fail || !strings.Contains(got.Detail, "nothing listens") {
		t.Errorf("dead: %+v", got)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	if got := find(t, at(t, strings.Replace(plain.URL, "http:", "https:", 1), nil).Checks(t.Context()), "connection"); got.Result != Fail ||
		!strings.Contains(got.Advice, "API server's port") {
		t.Errorf("without TLS: %+v", got)
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	if got := find(t, at(t, strings.Replace(secure.URL, "https:", "http:", 1), nil).Checks(t.Context()), "api-server"); got.Result != Fail ||
		!strings.Contains(got.Advice, "https://") {
		t.Errorf("TLS, asked without: %+v", got)
	}
}

func TestClientCertificates(t *testing.T) {
	p := newPatient(t)
	s := p.server(t)
	issue := func(lasts time.Duration) *pki.Pair {
		pair, err := p.ca.Issue(pki.Subject{CommonName: "alice", Client: true}, time.Now(), lasts)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	good, old := issue(60*24*time.Hour), issue(-time.Minute)
	for name, test := range map[string]struct {
		cert, key []byte
		file      string
		want      Result
	}{
		"good":    {good.Cert, good.Key, "", OK},
		"expired": {old.Cert, old.Key, "", Fail},
		"swapped": {good.Cert, old.Key, "", Fail},
		"gone":    {nil, nil, filepath.Join(t.TempDir(), "x"), Fail},
	} {
		s.Config.CertData, s.Config.KeyData, s.Config.CertFile = test.cert, test.key, test.file
		if got := find(t, s.Checks(t.Context()), "client-certificate"); got.Result != test.want || strings.Contains(got.Detail, "PRIVATE") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestNodes(t *testing.T) {
	now := time.Now()
	node := func(name, version string, conditions ...corev1.NodeCondition) core.Node {
		return core.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Conditions: conditions, NodeInfo: corev1.NodeSystemInfo{KubeletVersion: version},
		}}
	}
	is := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Message: "because"}
	}
	ready := is(corev1.NodeReady, corev1.ConditionTrue)
	cordoned := node("cordoned", "v1.37.0", ready)
	cordoned.Spec.Unschedulable = true
	old := metav1.NewMicroTime(now.Add(-time.Minute))
	fresh := metav1.NewMicroTime(now)
	written := func(at time.Time) metav1.ObjectMeta {
		noted := metav1.NewTime(at)
		return metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet", Time: &noted,
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:renewTime":{}}}`)}}}}
	}
	off := func(name string, by time.Duration, at time.Time) coordinationv1.Lease {
		own := metav1.NewMicroTime(at.Add(by))
		lease := coordinationv1.Lease{ObjectMeta: written(at), Spec: coordinationv1.LeaseSpec{RenewTime: &own}}
		lease.Name = name
		return lease
	}
	leases := []coordinationv1.Lease{
		{ObjectMeta: metav1.ObjectMeta{Name: "silent"}, Spec: coordinationv1.LeaseSpec{RenewTime: &old}},
		{ObjectMeta: metav1.ObjectMeta{Name: "well"}, Spec: coordinationv1.LeaseSpec{RenewTime: &fresh}},
		off("ahead", 3*time.Hour, now), off("behind", -3*time.Hour, now), off("a-second", time.Second, now),
	}
	for _, test := range []struct {
		node core.Node
		want Result
		says string
	}{
		{node("well", "v1.36.4+kctl-1", ready), OK, "all of them ready"},
		{node("not-ready", "v1.37.0", is(corev1.NodeReady, corev1.ConditionFalse)), Fail, "not ready: because"},
		{node("new", "v1.37.0"), Fail, "has not reported"},
		{node("silent", "v1.37.0", ready), Fail, "not renewed its lease for 1m0s"},
		{node("ahead", "v1.37.0", ready), Warn, "its clock is 3h0m0s off from the server's clock"},
		{node("behind", "v1.37.0", ready), Warn, "its clock is 3h0m0s off from the server's clock"},
		{node("a-second", "v1.37.0", ready), OK, "all of them ready"},
		{cordoned, Warn, "cordoned"},
		{node("full", "v1.37.0", ready, is(corev1.NodeDiskPressure, corev1.ConditionTrue)), Warn, "DiskPressure"},
		{node("too-new", "v1.38.0", ready), Fail, "newer than"},
		{node("too-old", "v1.33.0", ready), Fail, "too old"},
	} {
		got := (&Server{Now: func() time.Time { return now }}).judgeNodes([]core.Node{test.node}, leases, "v1.37.0")
		if len(got) != 1 || got[0].Result != test.want || !strings.Contains(got[0].Detail, test.says) {
			t.Errorf("%s: %+v", test.node.Name, got)
		}
	}
}

// Workloads in a cluster without kube-controller-manager.
func TestWorkloadsThatNobodyTakesUp(t *testing.T) {
	now := time.Now()
	object := func(group, kind string, age time.Duration, observed int64, status map[string]any) []unstructured.Unstructured {
		o := unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": kind, "status": status}}
		o.SetNamespace("a")
		o.SetName("d")
		o.SetGeneration(2)
		o.SetCreationTimestamp(metav1.NewTime(now.Add(-age)))
		if observed > 0 {
			_ = unstructured.SetNestedField(o.Object, observed, "status", "observedGeneration")
		}
		return []unstructured.Unstructured{o}
	}
	for name, waits := range map[string][]unstructured.Unstructured{
		"an old deployment": object("apps", "Deployment", time.Minute, 1, map[string]any{}),
		"a new daemon set":  object("apps", "DaemonSet", time.Minute, 0, map[string]any{}),
		"a job":             object("batch", "Job", time.Minute, 0, map[string]any{}),
	} {
		if got := judgeWorkloads("things", waits, now); len(got) != 1 || got[0].Result != Warn || !strings.Contains(got[0].Detail, "a/d") ||
			!strings.Contains(got[0].Advice, "pods of things") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, well := range map[string][]unstructured.Unstructured{
		"taken up": object("apps", "Deployment", time.Minute, 2, map[string]any{}), "of now": object("apps", "Deployment", time.Second, 0, map[string]any{}),
		"none":            nil,
		"a job that runs": object("batch", "Job", time.Minute, 0, map[string]any{"startTime": "2026-01-01T00:00:00Z"}),
		"a job of now":    object("batch", "Job", time.Second, 0, map[string]any{}),
	} {
		if got := judgeWorkloads("things", well, now); len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A cluster of kctl up has no units to look at.
func TestAdviceForKctlUp(t *testing.T) {
	s := newPatient(t).server(t)
	s.Config.Host, s.Up = "https://127.0.0.1:1", "/srv/two"
	s.Client = at(t, s.Config.Host, nil).Client
	if got := find(t, s.Checks(t.Context()), "connection"); !strings.Contains(got.Advice, "`kctl up --dir /srv/two`") ||
		strings.Contains(got.Advice, "systemctl") {
		t.Errorf("%+v", got)
	}
	gone := newPatient(t)
	gone.handler = withoutEtcd
	s = gone.server(t)
	s.Up = "/srv/two"
	if got := find(t, s.Checks(t.Context()), "ready"); !strings.Contains(got.Advice, "/srv/two/log/apiserver.log") || strings.Contains(got.Advice, "systemctl") {
		t.Errorf("%+v", got)
	}
	old := newPatient(t)
	old.lasts = -time.Minute
	s = old.server(t)
	s.Up = "/srv/two"
	if got := find(t, s.Checks(t.Context()), "server-certificate"); got.Advice != "`kctl pki renew apiserver --dir /srv/two`" {
		t.Errorf("%+v", got)
	}
}

func TestRequestsAndTokens(t *testing.T) {
	now := time.Now()
	var requests []certificatesv1.CertificateSigningRequest
	for i := range 7 {
		requests = append(requests, certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("csr-", i), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		}})
	}
	if got := judgeRequests(requests, now); got.Result != Warn || !strings.Contains(got.Detail, "csr-0") || !strings.Contains(got.Detail, "and 2 more") {
		t.Errorf("got %+v", got)
	}
	if got := judgeRequests(requests, now.Add(-time.Hour)); got.Result != OK {
		t.Errorf("new ones: %+v", got)
	}
	token := func(expires string) core.Secret {
		return core.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef"},
			Data:       map[string][]byte{"token-secret": []byte("the-secret"), "expiration": []byte(expires)},
		}
	}
	for expires, want := range map[string]Result{"": Warn, "rubbish": Warn, now.Add(-time.Hour).Format(time.RFC3339): Warn,
		now.Add(time.Hour).Format(time.RFC3339): OK} {
		got := judgeTokens([]core.Secret{token(expires)}, now)
		if got.Result != want || strings.Contains(got.Detail, "the-secret") || want == Warn && !strings.Contains(got.Detail, "abcdef") {
			t.Errorf("%q: %+v", expires, got)
		}
	}
}
