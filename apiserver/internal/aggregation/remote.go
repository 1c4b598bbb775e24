package aggregation

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
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
	"kctl/proto/core"
)

const (
	dialTime = 10 * time.Second
	// readTime bounds how long a document or a check may take.
	readTime = 5 * time.Second
	// maxDocument bounds the size of another server's documents.
	maxDocument = 16 << 20
)

// remote is another server in its role for one group and version.
type remote struct {
	schema.GroupVersion
	name    string // of the APIService
	uid     types.UID
	service serviceName
	// trusted and unchecked determine which certificates are accepted.
	trusted   []byte
	unchecked bool

	// calls is for requests, upgrades for those that switch protocols, which
	// HTTP/2 can't.
	calls, upgrades *http.Transport
	// broken is why the server can't be called at all.
	broken    error
	available atomic.Bool
	turns     atomic.Int64 // counts how often it became available

	mu      sync.Mutex
	known   knowledge
	objects map[core.Resource]*objects // of what was known at any time
}

type serviceName struct {
	namespace, name string
	port            int32
}

// knowledge is the content of another server's documents.
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
		trusted: s.Spec.CABundle, unchecked: s.Spec.InsecureSkipTLSVerify, objects: map[core.Resource]*objects{},
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
		// Pings detect a dead connection even if nothing is sent.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	r.upgrades = &http.Transport{
		TLSClientConfig: config.Clone(), DialContext: r.calls.DialContext, TLSHandshakeTimeout: dialTime, DisableKeepAlives: true,
	}
	return r
}

// is reports whether an APIService still refers to this server.
func (r *remote) is(s *apiservice.APIService) bool {
	return s.UID == r.uid && s.Spec.Service != nil && serviceOf(s) == r.service && s.Spec.InsecureSkipTLSVerify == r.unchecked &&
		reflect.DeepEqual(s.Spec.CABundle, r.trusted) && apiservice.GroupVersion(s) == r.GroupVersion
}

// end closes idle connections.
func (r *remote) end() {
	r.calls.CloseIdleConnections()
	r.upgrades.CloseIdleConnections()
}
