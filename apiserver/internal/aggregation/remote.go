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
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/resources/apiservice"
	"kctl/apiserver/internal/rotation"
	"kctl/proto/core"
	"kctl/proto/rest"
)

const (
	dialTimeout = 10 * time.Second
	// readTimeout bounds how long a document or a check may take.
	readTimeout = 5 * time.Second
	// collectionTimeout bounds how long a page of objects, or deleting all in a namespace, may
	// take: as long as users' requests, by default.
	collectionTimeout = time.Minute
	// maxDocument bounds the size of another server's documents.
	maxDocument = 16 << 20
)

// remote is another server in its role for one group and version.
type remote struct {
	schema.GroupVersion
	name    string // of the APIService
	uid     types.UID
	service serviceName
	// caBundle and insecureSkipTLSVerify determine which certificates are accepted.
	caBundle              []byte
	insecureSkipTLSVerify bool

	// requestTransport is for requests, upgradeTransport for those that switch protocols, which
	// HTTP/2 can't.
	requestTransport, upgradeTransport *rotation.Transport
	// configError is why the server can't be called at all.
	configError    error
	available      atomic.Bool
	availableCount atomic.Int64 // counts how often it became available

	mu        sync.Mutex
	documents remoteDocuments
	objects   map[core.Resource]*objects // of what discovery names
}

type serviceName struct {
	namespace, name string
	port            int32
}

// remoteDocuments is the content of another server's documents.
type remoteDocuments struct {
	discovery     *apidiscoveryv2.APIVersionDiscovery // nil for nothing yet
	discoveryETag string
	fresh         bool // at the last attempt
	description   description
}

func serviceOf(s *apiservice.APIService) serviceName {
	to := s.Spec.Service
	return serviceName{namespace: to.Namespace, name: to.Name, port: ptr.Deref(to.Port, apiservice.DefaultPort)}
}

func (a *Aggregator) newRemote(s *apiservice.APIService) *remote {
	r := &remote{
		GroupVersion: apiservice.GroupVersion(s), name: s.Name, uid: s.UID, service: serviceOf(s),
		caBundle: s.Spec.CABundle, insecureSkipTLSVerify: s.Spec.InsecureSkipTLSVerify,
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: r.service.name + "." + r.service.namespace + ".svc",
		InsecureSkipVerify: r.insecureSkipTLSVerify,
	}
	if len(r.caBundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(r.caBundle) {
			r.configError = errors.New("unable to load root certificates: unable to parse bytes as PEM block")
		}
	}
	if a.clientCertificate != nil {
		config.GetClientCertificate = a.clientCertificate.GetClientCertificate
	}
	r.requestTransport = rotation.New(&http.Transport{
		TLSClientConfig: config, DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: rest.MaxAnswerHeaders,
		// Pings detect a dead connection even if nothing is sent.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}, nil)
	r.upgradeTransport = rotation.New(&http.Transport{
		TLSClientConfig: config.Clone(), DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: rest.MaxAnswerHeaders,
	}, nil)
	return r
}

// isFor reports whether an APIService still refers to this server.
func (r *remote) isFor(s *apiservice.APIService) bool {
	return s.UID == r.uid && s.Spec.Service != nil && serviceOf(s) == r.service && s.Spec.InsecureSkipTLSVerify == r.insecureSkipTLSVerify &&
		reflect.DeepEqual(s.Spec.CABundle, r.caBundle) && apiservice.GroupVersion(s) == r.GroupVersion
}

// closeIdle closes idle connections.
func (r *remote) closeIdle() {
	r.requestTransport.CloseIdleConnections()
	r.upgradeTransport.CloseIdleConnections()
}
