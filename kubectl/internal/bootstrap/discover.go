package bootstrap

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/json"

	"kctl/kubectl/internal/certificates"
)

// Discovery is how a machine that joins knows that a server is the cluster's.
type Discovery struct {
	Server string   // host:port
	Hashes []string // of the authorities that are trusted
	Unsafe bool     // trust any server that answers
	File   string   // a kubeconfig with server and authority, instead of all that
}

// Cluster is what a machine found out about a cluster. No secret was sent to
// find it out.
type Cluster struct {
	Server string // URL
	CA     []byte // PEM
	// Time is the server's clock; zero if unknown.
	Time time.Time
}

// requestTimeout bounds each step of finding out.
const requestTimeout = 10 * time.Second

// maxInfo bounds how many bytes of an unknown server's answer are read.
const maxInfo = 1 << 20

// infoPath is where clusters made by kubeadm publish information about themselves.
const infoPath = "/api/v1/namespaces/kube-public/configmaps/cluster-info"

// Find finds out.
func (d Discovery) Find(ctx context.Context) (*Cluster, error) {
	if d.File != "" {
		return d.fromFile(ctx)
	}
	if len(d.Hashes) == 0 && !d.Unsafe {
		return nil, errors.New(
			"--discovery-token-ca-cert-hash is required, to verify the server (`kctl token create --print-join-command` prints it); " +
				"--discovery-token-unsafe-skip-ca-verification does without, and gives the token to whoever answers")
	}
	for _, hash := range d.Hashes {
		if digest, ok := strings.CutPrefix(hash, "sha256:"); !ok || len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "" {
			return nil, fmt.Errorf("--discovery-token-ca-cert-hash=%s: want sha256: and 64 hexadecimal digits", hash)
		}
	}
	host, _, err := net.SplitHostPort(d.Server)
	if err != nil || host == "" {
		return nil, fmt.Errorf("API server %q: want HOST:PORT", d.Server)
	}
	answer, err := fetchInfo(ctx, d.Server, &tls.Config{InsecureSkipVerify: true}) // who it is comes out below
	if err != nil {
		return nil, err
	}
	pinned, bundle, err := d.authorities(answer)
	if err != nil {
		return nil, err
	}
	if err := verify(answer, host, pinned); err != nil {
		return nil, err
	}
	return &Cluster{Server: "https://" + d.Server, CA: bundle, Time: answer.time}, nil
}

// serverInfo is what an unknown server says.
type serverInfo struct {
	chain []*x509.Certificate
	time  time.Time
	info  []byte // the cluster-info, if it tells
}

// fetchInfo connects to a server, without any credential.
func fetchInfo(ctx context.Context, server string, config *tls.Config) (*serverInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a := &serverInfo{}
	config.MinVersion = tls.VersionTLS12
	config.VerifyConnection = func(state tls.ConnectionState) error {
		a.chain = state.PeerCertificates
		return nil
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+server+infoPath, nil)
	if err != nil {
		return nil, fmt.Errorf("API server %q: %w", server, err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("API server %s: no answer within %s: check the address, and that no firewall blocks the connection",
				server, requestTimeout)
		}
		return nil, fmt.Errorf("API server %s: %w", server, err)
	}
	defer response.Body.Close()
	a.time, _ = http.ParseTime(response.Header.Get("Date"))
	if response.StatusCode == http.StatusOK {
		a.info, err = io.ReadAll(io.LimitReader(response.Body, maxInfo))
	}
	return a, err
}

// authorities are those that the server is to be verified by, which have one of the
// hashes, and those that the cluster is trusted by from then on. Kubeadm's clusters tell
// theirs in their cluster-info: a bundle, which has two while one replaces the other, and
// which is trusted as a whole once the server is verified; before that, it is anyone's claim.
// Our API servers show theirs with their certificate, and those with a hash are trusted.
func (d Discovery) authorities(a *serverInfo) (pinned, bundle []byte, err error) {
	unknown := func(cert *x509.Certificate) bool {
		return !d.Unsafe && !slices.Contains(d.Hashes, certificates.Hash(cert))
	}
	var told []*x509.Certificate
	if ca := authorityOf(a.info); len(ca) > 0 {
		if told, err = certutil.ParseCertsPEM(ca); err != nil {
			return nil, nil, fmt.Errorf("the server's cluster-info: %w", err)
		}
	}
	seen := slices.DeleteFunc(slices.Clone(a.chain), func(cert *x509.Certificate) bool { return !cert.IsCA })
	seen = append(seen, told...)
	known := slices.DeleteFunc(slices.Clone(seen), unknown)
	switch {
	case len(seen) == 0:
		return nil, nil, errors.New(
			"the server presents no CA (neither in its certificate chain nor in cluster-info): check that it is an API server; if it " +
				"is, put the cluster's ca.crt into a kubeconfig on this machine and use --discovery-file")
	case len(known) == 0:
		var hashes []string
		for _, cert := range seen {
			hashes = append(hashes, certificates.Hash(cert))
		}
		return nil, nil, fmt.Errorf(
			"the server's CA is %s, which differs from --discovery-token-ca-cert-hash: it belongs to another cluster, or the connection "+
				"is intercepted. The token was not sent", strings.Join(hashes, ", "))
	}
	if pinned, err = certutil.EncodeCertificates(known...); err != nil {
		return nil, nil, err
	}
	if !slices.ContainsFunc(told, func(cert *x509.Certificate) bool { return !unknown(cert) }) {
		return pinned, pinned, nil
	}
	for _, cert := range known { // one that the server shows may not be told yet
		if !slices.ContainsFunc(told, cert.Equal) {
			told = append(told, cert)
		}
	}
	bundle, err = certutil.EncodeCertificates(told...)
	return pinned, bundle, err
}

// authorityOf is the authority in a cluster-info; nil if there is none.
func authorityOf(info []byte) []byte {
	var object corev1.ConfigMap
	if len(info) == 0 || json.UnmarshalCaseSensitivePreserveInts(info, &object) != nil {
		return nil
	}
	config, err := clientcmd.Load([]byte(object.Data["kubeconfig"]))
	if err != nil {
		return nil
	}
	if cluster := onlyCluster(config); cluster != nil {
		return cluster.CertificateAuthorityData
	}
	return nil
}

func onlyCluster(config *clientcmdapi.Config) *clientcmdapi.Cluster {
	if context := config.Contexts[config.CurrentContext]; context != nil {
		return config.Clusters[context.Cluster]
	}
	if len(config.Clusters) != 1 {
		return nil
	}
	for _, cluster := range config.Clusters {
		return cluster
	}
	return nil
}

// verify checks the server's certificate against the authorities, which may have issued it
// by others that the server sends along.
func verify(a *serverInfo, host string, authorities []byte) error {
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	for _, cert := range a.chain[1:] {
		intermediates.AddCert(cert)
	}
	_, err := a.chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, DNSName: host})
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return fmt.Errorf("the server's certificate is valid from %s to %s, but this machine's clock shows %s (the server's %s): set the "+
			"clock, or renew the certificate with `kctl pki renew apiserver`",
			formatTime(a.chain[0].NotBefore), formatTime(a.chain[0].NotAfter), formatTime(time.Now()), formatTime(a.time))
	}
	if err != nil {
		return fmt.Errorf("the server's certificate: %w", err)
	}
	return nil
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// fromFile takes server and authority from a kubeconfig.
func (d Discovery) fromFile(ctx context.Context) (*Cluster, error) {
	data, err := os.ReadFile(d.File)
	if err != nil {
		return nil, fmt.Errorf("--discovery-file: %w", err)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("--discovery-file=%s: %w", d.File, err)
	}
	cluster := onlyCluster(config)
	if cluster == nil {
		return nil, fmt.Errorf("--discovery-file=%s: it has neither a current context with a cluster nor exactly one cluster", d.File)
	}
	ca := cluster.CertificateAuthorityData
	if len(ca) == 0 && cluster.CertificateAuthority != "" {
		if ca, err = os.ReadFile(cluster.CertificateAuthority); err != nil {
			return nil, fmt.Errorf("--discovery-file=%s: %w", d.File, err)
		}
	}
	host := strings.TrimPrefix(cluster.Server, "https://")
	name, _, err := net.SplitHostPort(host)
	if err != nil || host == cluster.Server {
		return nil, fmt.Errorf("--discovery-file=%s: server %q: want https://HOST:PORT", d.File, cluster.Server)
	}
	if d.Server != "" && d.Server != host {
		return nil, fmt.Errorf("--discovery-file=%s: it is for %s, not %s", d.File, host, d.Server)
	}
	if !bytes.Contains(ca, []byte("BEGIN CERTIFICATE")) {
		return nil, fmt.Errorf("--discovery-file=%s: it contains no CA", d.File)
	}
	a, err := fetchInfo(ctx, host, &tls.Config{InsecureSkipVerify: true}) // verified here, for a clear word
	if err != nil {
		return nil, err
	}
	if err := verify(a, name, ca); err != nil {
		return nil, err
	}
	return &Cluster{Server: cluster.Server, CA: ca, Time: a.time}, nil
}
