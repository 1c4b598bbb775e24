package aggregation

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/resources/apiservice"
)

const (
	dialTime = 10 * time.Second
	// readTime bounds how long a document or a check may take.
	readTime = 5 * time.Second
	// maxDocument bounds what another server may say of itself.
	maxDocument = 16 << 20
)

// remote is another server as far as it answers for one group and version.
type remote struct {
	schema.GroupVersion
	name    string // of the APIService
	uid     types.UID
	service serviceName
	// trusted and unchecked say whose certificates are taken.
	trusted   []byte
	unchecked bool

	// calls is for requests, upgrades for those that leave HTTP behind, which
	// HTTP/2 knows no way for.
	calls, upgrades *http.Transport
	// broken says why the server can't be asked at all.
	broken    error
	available atomic.Bool
	turns     atomic.Int64 // counts how often it came to be available

	mu    sync.Mutex
	known knowledge
}

type serviceName struct {
	namespace, name string
	port            int32
}

// knowledge is what another server said of itself.
type knowledge struct {
	discovery     *apidiscoveryv2.APIVersionDiscovery // nil for nothing yet
	discoveryETag string
	fresh         bool // at the last attempt
	description   description
}

func serviceOf(s *apiservice.APIService) serviceName {
	out := serviceName{namespace: s.Spec.Service.Namespace, name: s.Spec.Service.Name, port: apiservice.DefaultPort}
	if s.Spec.Service.Port != nil {
		out.port = *s.Spec.Service.Port
	}
	return out
}

func (a *Aggregator) newRemote(s *apiservice.APIService) *remote {
	r := &remote{
		GroupVersion: apiservice.GroupVersion(s), name: s.Name, uid: s.UID, service: serviceOf(s),
		trusted: s.Spec.CABundle, unchecked: s.Spec.InsecureSkipTLSVerify,
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: r.service.name + "." + r.service.namespace + ".svc", InsecureSkipVerify: r.unchecked,
	}
	if len(r.trusted) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(r.trusted) {
			r.broken = errors.New("unable to load root certificates: unable to parse bytes as PEM block")
		}
	}
	if a.shown != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return a.shown.GetCertificate(nil) }
	}
	r.calls = &http.Transport{
		TLSClientConfig: config, DialContext: (&net.Dialer{Timeout: dialTime}).DialContext, TLSHandshakeTimeout: dialTime,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
		// A connection that leads nowhere any more is noticed though nothing is sent.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	r.upgrades = &http.Transport{
		TLSClientConfig: config.Clone(), DialContext: r.calls.DialContext, TLSHandshakeTimeout: dialTime, DisableKeepAlives: true,
	}
	return r
}

// is reports whether an APIService still means this server.
func (r *remote) is(s *apiservice.APIService) bool {
	return s.UID == r.uid && s.Spec.Service != nil && serviceOf(s) == r.service && s.Spec.InsecureSkipTLSVerify == r.unchecked &&
		reflect.DeepEqual(s.Spec.CABundle, r.trusted) && apiservice.GroupVersion(s) == r.GroupVersion
}

// end lets go of what no request needs.
func (r *remote) end() {
	r.calls.CloseIdleConnections()
	r.upgrades.CloseIdleConnections()
}

// checker is the name under which the server asks for itself.
var checker = http.Header{"X-Remote-User": {"system:kube-aggregator"}, "X-Remote-Group": {"system:masters"}}

// read asks for a document. The answer's body is nil where it is not changed.
func (a *Aggregator) read(ctx context.Context, r *remote, path, accept, etag string, as http.Header) (*http.Response, []byte, error) {
	return a.send(ctx, r, http.MethodGet, path, accept, etag, as)
}

// send makes a request of the server's own.
func (a *Aggregator) send(ctx context.Context, r *remote, method, path, accept, etag string, as http.Header) (*http.Response, []byte, error) {
	if r.broken != nil {
		return nil, nil, r.broken
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	host, err := a.resolve(ctx, r.service)
	if err != nil {
		return nil, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, "https://"+host+path, nil)
	if err != nil {
		return nil, nil, err
	}
	for name, values := range as {
		request.Header[name] = values
	}
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	if etag != "" {
		request.Header.Set("If-None-Match", etag)
	}
	client := http.Client{Transport: r.calls, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotModified && etag != "" {
		return response, nil, nil
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return response, nil, fmt.Errorf("bad status from %s: %d", request.URL, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err == nil && len(body) > maxDocument {
		err = fmt.Errorf("%s is larger than %d bytes", request.URL, maxDocument)
	}
	return response, body, err
}
