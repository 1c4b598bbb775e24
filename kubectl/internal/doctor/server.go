package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	clientrest "k8s.io/client-go/rest"

	"kctl/kubectl/internal/cluster"
	"kctl/proto/rest"
)

// Server is an API server and the way to it.
type Server struct {
	Config *clientrest.Config
	Client *rest.Client
	Now    func() time.Time
	// Warn is how long before their expiry certificates are mentioned.
	Warn time.Duration
	// Up is the directory of the cluster, quoted for a shell, if `kctl up` made it
	// on this machine.
	Up string
	// UpNode is that machine's node, if it is known; all others have joined, and know nothing of Up.
	UpNode string

	ahead time.Duration // of the server's clock, this machine's
}

// serverNow is the time by the server's clock, which what is stored there goes by.
func (s *Server) serverNow() time.Time { return s.Now().Add(-s.ahead) }

// serviceHint says where to look after a program, which is a systemd unit or, in a
// cluster of `kctl up`, a process.
func (s *Server) serviceHint(name string) string { return ServiceHint(s.Up, name) }

// ServiceHint says where to look after a program of the cluster that `kctl up` made
// in the directory up, or, if that is empty, of a systemd unit.
func ServiceHint(up, name string) string {
	if up != "" {
		return fmt.Sprintf("`kctl status --dir %[1]s` shows its state, `kctl up --dir %[1]s` starts programs that are "+
			"not running, %[2]s is its log", up, cluster.Layout{Dir: up}.Log(name))
	}
	return fmt.Sprintf("`systemctl status kctl-%[1]s`, `journalctl -u kctl-%[1]s`", name)
}

// etcdHint says what keeps an API server from its etcd.
func (s *Server) etcdHint() string {
	if s.Up != "" {
		return "see that the disk is not full, and that the etcd of --etcd-servers, if there is one, runs and answers; what the API " +
			"server embeds runs with it: " + s.serviceHint("apiserver")
	}
	return "see that most of etcd's members run and reach each other (`systemctl status kctl-etcd`), that their disks are not full, and " +
		"that the API server's certificate for etcd is good (`kctl pki check`)"
}

// renewHint says how a certificate of the control plane is renewed.
func (s *Server) renewHint(name string) string {
	if s.Up != "" {
		return fmt.Sprintf("`kctl pki renew %s --dir %s`", name, s.Up)
	}
	return fmt.Sprintf("`kctl pki renew %s` on the control plane", name)
}

// Checks looks at the server and, through it, at the cluster. If a step fails,
// those that need it are left out.
func (s *Server) Checks(ctx context.Context) []Check {
	checks := s.clientCertificate()
	connection, connected := s.checkConnection(ctx)
	checks = append(checks, connection...)
	if !connected {
		return checks
	}
	answers, version := s.checkVersion(ctx)
	checks = append(checks, answers...)
	if version == "" {
		return checks
	}
	checks = append(checks, s.checkReady(ctx))
	return append(checks, s.checkCluster(ctx, version)...)
}

// clientCertificate looks at the one in the kubeconfig, if there is one.
func (s *Server) clientCertificate() []Check {
	const name = "client-certificate"
	config := s.Config
	certPEM, keyPEM := config.CertData, config.KeyData
	for _, part := range []struct {
		into *[]byte
		file string
	}{{&certPEM, config.CertFile}, {&keyPEM, config.KeyFile}} {
		if len(*part.into) == 0 && part.file != "" {
			data, err := os.ReadFile(part.file)
			if err != nil {
				return []Check{fail(name, "restore the file, or get a new kubeconfig", "%v", err)}
			}
			*part.into = data
		}
	}
	if len(certPEM) == 0 {
		return nil
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return []Check{fail(name, "get a new kubeconfig: `kctl pki kubeconfig` on the control plane",
			"certificate and key in the kubeconfig don't match: %v", err)}
	}
	return []Check{s.checkExpiry(name, pair.Leaf, s.renewHint("admin")+
		" renews that of admin.kubeconfig, `kctl pki kubeconfig` makes another kubeconfig")}
}

// checkExpiry says how long a certificate is still valid.
func (s *Server) checkExpiry(name string, cert *x509.Certificate, advice string) Check {
	now, until := s.Now(), cert.NotAfter.UTC().Format(time.RFC3339)
	switch {
	case now.Before(cert.NotBefore):
		return fail(name, "set this machine's clock", "%q is not valid before %s",
			cert.Subject.CommonName, cert.NotBefore.UTC().Format(time.RFC3339))
	case !now.Before(cert.NotAfter):
		return fail(name, advice, "%q expired at %s", cert.Subject.CommonName, until)
	case now.Add(s.Warn).After(cert.NotAfter):
		return warn(name, advice, "%q expires at %s", cert.Subject.CommonName, until)
	}
	return ok(name, "%q is valid until %s", cert.Subject.CommonName, until)
}

// checkConnection connects to the server and looks at its certificate.
func (s *Server) checkConnection(ctx context.Context) ([]Check, bool) {
	const name = "connection"
	u := s.Client.URL("")
	if u.Scheme != "https" {
		return []Check{warn(name, "", "%s is reached without TLS", u.Host)}, true
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "443")
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return []Check{s.connectFailed(name, address, err)}, false
	}
	defer raw.Close()
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, ServerName: u.Hostname()}) // verified below, for a clear word
	if err := conn.HandshakeContext(ctx); err != nil {
		if ctx.Err() != nil {
			return []Check{fail(name, "restart the program that listens there, and check its log: it accepts connections but does not answer",
				"%s: no TLS handshake within %s", address, answerWithin)}, false
		}
		return []Check{fail(name, "is it the API server's port?", "%s: %v", address, err)}, false
	}
	chain := conn.ConnectionState().PeerCertificates
	checks := []Check{ok(name, "%s answers", address), s.checkExpiry("server-certificate", chain[0], s.renewHint("apiserver"))}
	trusted := s.checkTrusted(chain, u.Hostname())
	return append(checks, trusted), trusted.Result != Fail && checks[1].Result != Fail
}

func (s *Server) connectFailed(name, address string, err error) Check {
	var lookup *net.DNSError
	switch {
	case errors.As(err, &lookup):
		return fail(name, "check the name in the kubeconfig and this machine's DNS", "%s: %v", address, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail(name, "start the API server ("+s.serviceHint("apiserver")+"), or correct the address in the kubeconfig",
			"%s: nothing listens there", address)
	case errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err):
		return fail(name, "check that the machine is up, and that no firewall blocks the connection", "%s: no connection within %s",
			address, answerWithin)
	}
	return fail(name, "check the address in the kubeconfig", "%s: %v", address, err)
}

// checkTrusted verifies the server's certificate as clients with this kubeconfig do.
// Times are not looked at: checkExpiry has.
func (s *Server) checkTrusted(chain []*x509.Certificate, host string) Check {
	const name = "server-authority"
	if s.Config.Insecure {
		return warn(name, "add the CA to the kubeconfig (certificate-authority-data)",
			"the kubeconfig turns off verification of the server's certificate (insecure-skip-tls-verify)")
	}
	if s.Config.ServerName != "" {
		host = s.Config.ServerName
	}
	options := x509.VerifyOptions{DNSName: host, CurrentTime: chain[0].NotBefore.Add(time.Second), Intermediates: x509.NewCertPool()}
	for _, cert := range chain[1:] {
		options.Intermediates.AddCert(cert)
	}
	ca := s.Config.CAData
	if len(ca) == 0 && s.Config.CAFile != "" {
		data, err := os.ReadFile(s.Config.CAFile)
		if err != nil {
			return fail(name, "restore the file", "%v", err)
		}
		ca = data
	}
	if len(ca) > 0 {
		options.Roots = x509.NewCertPool()
		options.Roots.AppendCertsFromPEM(ca)
	}
	_, err := chain[0].Verify(options)
	var otherName x509.HostnameError
	switch {
	case errors.As(err, &otherName):
		return fail(name, "`kctl pki init --hosts "+host+"` on the control plane adds the name", "the server's certificate is not for %s: %v",
			host, err)
	case err != nil:
		return fail(name, "get the cluster's own kubeconfig; if this is it, someone may be intercepting the connection",
			"the server's certificate is not signed by the kubeconfig's CA: %v", err)
	}
	return ok(name, "the server's certificate is signed by the kubeconfig's CA")
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 1 << 20

// get asks the server for something, as the kubeconfig's user.
func (s *Server) get(ctx context.Context, path string) (status int, header http.Header, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	path, query, _ := strings.Cut(path, "?")
	u := s.Client.URL(path)
	u.RawQuery = query
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, nil, nil, err
	}
	response, err := s.Client.HTTP().Do(request)
	if err == nil {
		defer response.Body.Close()
		body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	}
	if err != nil && ctx.Err() != nil {
		return 0, nil, nil, fmt.Errorf("no answer within %s", answerWithin)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	if err != nil {
		return 0, nil, nil, err
	}
	return response.StatusCode, response.Header, body, nil
}

// mostSkew is how far clocks may be apart before things go wrong.
const (
	mostSkew = 5 * time.Minute
	someSkew = 10 * time.Second
)

const clockAdvice = "set the clocks by NTP (`timedatectl set-ntp true`): certificates, leases and tokens go by them"

// checkVersion asks for the server's version; "" if that fails.
func (s *Server) checkVersion(ctx context.Context) ([]Check, string) {
	const name = "api-server"
	status, header, body, err := s.get(ctx, "/version")
	if err != nil {
		return []Check{fail(name, "check the API server's log and the load of its machine", "%v", err)}, ""
	}
	var version struct{ GitVersion string }
	isVersion := json.Unmarshal(body, &version) == nil && version.GitVersion != ""
	switch {
	case status == http.StatusUnauthorized:
		return []Check{fail(name, "get a new kubeconfig: the server does not accept this one's certificate or token",
			"authentication failed (401)")}, ""
	case status == http.StatusForbidden:
		return []Check{fail(name, "ask an administrator to bind the role system:public-info-viewer to you",
			"you are not allowed to read the server's version (403)")}, ""
	case status == http.StatusBadRequest && strings.Contains(string(body), "HTTP request to an HTTPS server"):
		return []Check{fail(name, "change http:// to https:// in the server's address in the kubeconfig",
			"the server expects HTTPS, but was contacted without TLS")}, ""
	case status != http.StatusOK || !isVersion:
		return []Check{fail(name, "there may be a web server or a proxy at this address: correct the server in the kubeconfig",
			"the answer is not an API server's: status %d, %s", status, kindOf(header, body))}, ""
	}
	checks := []Check{ok(name, "version %s", version.GitVersion)}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		s.ahead = s.Now().Sub(date)
		checks = append(checks, s.checkClock(date))
	}
	return checks, version.GitVersion
}

// kindOf says what an answer looks like, without repeating it.
func kindOf(header http.Header, body []byte) string {
	if strings.Contains(header.Get("Content-Type"), "html") || strings.HasPrefix(strings.TrimSpace(string(body)), "<") {
		return "a web page"
	}
	return fmt.Sprintf("%d bytes", len(body))
}

func (s *Server) checkClock(server time.Time) Check {
	apart := s.Now().Sub(server).Abs().Round(time.Second)
	switch {
	case apart > mostSkew:
		return fail("clock", clockAdvice, "%s off from the server's clock", apart)
	case apart > someSkew:
		return warn("clock", clockAdvice, "%s off from the server's clock", apart)
	}
	return ok("clock", "%s off from the server's clock", apart)
}

// checkReady asks which of the server's parts are not ready.
func (s *Server) checkReady(ctx context.Context) Check {
	const name = "ready"
	status, _, body, err := s.get(ctx, "/readyz?verbose")
	if err != nil {
		return fail(name, "check the API server's log", "%v", err)
	}
	var failed, remarks []string
	for line := range strings.Lines(string(body)) {
		if part, remark, found := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "[+]")), " ok, but "); found {
			remarks = append(remarks, part+": "+remark)
		}
		if part, found := strings.CutPrefix(line, "[-]"); found {
			part, _, _ = strings.Cut(part, " ")
			failed = append(failed, strings.TrimSpace(part))
		}
	}
	switch {
	case len(failed) > 0:
		advice := "check the API server's log"
		if strings.Contains(strings.Join(failed, " "), "etcd") {
			advice = s.etcdHint()
		}
		return fail(name, advice, "not ready: %s", strings.Join(failed, ", "))
	case status != http.StatusOK:
		return fail(name, "check the API server's log", "/readyz: status %d", status)
	}
	if len(remarks) > 0 {
		return fail(name, "the API server's log names the object, and so does `kctl get --all-namespaces` of its resource", "%s",
			strings.Join(remarks, ", "))
	}
	return ok(name, "all components of the API server are ready, including etcd")
}
