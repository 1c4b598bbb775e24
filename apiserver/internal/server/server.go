package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	admissionchain "kctl/apiserver/internal/admission/chain"
	"kctl/apiserver/internal/aggregation"
	"kctl/apiserver/internal/audit"
	authnchain "kctl/apiserver/internal/authn/chain"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/configfile"
	"kctl/apiserver/internal/customresources"
	"kctl/apiserver/internal/fairness/configcontroller"
	"kctl/apiserver/internal/filters"
	"kctl/apiserver/internal/gcpace"
	"kctl/apiserver/internal/handlers"
	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/housekeeping/leading"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/openapi"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources"
	"kctl/apiserver/internal/server/serving"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/backend"
	"kctl/apiserver/internal/storage/encrypt"
	"kctl/apiserver/internal/storage/measured"
	"kctl/apiserver/internal/trace"
	"kctl/proto/daemon"
	"kctl/proto/tracing"
)

// Controllers are the names of the housekeeping loops.
func Controllers() []string { return housekeeping.Names() }

// Server is one API server. New sets its fields; from Run on only port and
// builtin change, before the first request.
type Server struct {
	options *config.Options
	clock   clock.WithTicker
	logger  *zap.Logger
	tracer  *tracing.Tracer // nil for no tracing
	metrics *prometheus.Registry
	health  *daemon.Health
	tls     *tls.Config
	files   []*configfile.Follower // configuration that is read again when it changes

	// Where objects are stored, and which are served.
	backend     *backend.Backend
	transformer *encrypt.Transformer // nil for none
	resources   *resources.Set
	served      []registry.Served
	definitions *customresources.Definitions
	aggregator  *aggregation.Aggregator
	builtin     []schema.GroupVersion // what handler serves

	// What the filters and the handlers consult about a request.
	identities *authnchain.Authentication
	authorizer authz.Union
	rules      *rbac.Follower
	fairness   *configcontroller.Controller // nil for none
	auditor    *audit.Auditor               // nil for none
	ring       *trace.Ring
	exchange   *trace.Exchange
	meter      *handlers.Meter
	encodings  *handlers.Encodings // of what built-in and custom resources' clients get
	admission  *admissionchain.Control
	pods       *informer.Informer[informer.Pod] // used by the Node authorizer and the loops of the first term

	housekeeper *leading.Housekeeper
	documents   *openapi.Handler // the description of the API, from before any loop runs

	itself *serving.Itself // for its own requests

	port  int // the port, once the server listens
	drain *filters.Drain
	phases
}

// Run serves the API by the options, which are complete and valid, until ctx
// ends and everything is drained.
func Run(ctx context.Context, o *config.Options, logger *zap.Logger) error {
	gcpace.Start()
	s, err := New(ctx, o, clock.RealClock{}, logger)
	if err != nil {
		return err
	}
	return errors.Join(s.Run(ctx), s.Close())
}

// New puts a server together and opens its storage; nothing runs yet. Unless it
// fails, the caller calls Run and then Close.
func New(ctx context.Context, o *config.Options, clock clock.WithTicker, logger *zap.Logger) (*Server, error) {
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	s := &Server{
		options: o, clock: clock, logger: logger,
		metrics: daemon.NewRegistry(), health: daemon.NewHealth(), ring: trace.NewRing(trace.Capacity),
		drain: filters.NewDrain(), itself: serving.NewItself(), phases: newPhases(),
	}
	certificate, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.assemble(certificate); err != nil {
		return nil, errors.Join(err, s.backend.Close())
	}
	return s, nil
}

// open prepares the port and the storage. It returns the file of the serving
// certificate.
func (s *Server) open(ctx context.Context) (certificate string, err error) {
	if s.tls, certificate, err = serving.TLS(s.options, s.clock, s.logger); err != nil {
		return "", err
	}
	if s.tracer, err = newTracer(ctx, s.options, s.logger); err != nil {
		return "", err
	}
	transformer, err := s.encryption(ctx)
	if err != nil {
		return "", err
	}
	s.backend, err = backend.Open(ctx, backend.Options{
		Flags: s.options, Transformer: transformer, Forms: resources.Forms(), Metrics: measured.NewMetrics(s.metrics), Tracer: s.tracer, Clock: s.clock, Logger: s.logger,
	})
	if err != nil {
		return "", err
	}
	s.metrics.MustRegister(s.backend)
	return certificate, nil
}

// Close closes the storage, and sends the last spans, after Run has ended.
func (s *Server) Close() error {
	return errors.Join(s.backend.Close(), s.tracer.Close())
}

// Ready is closed when the server has read everything that its decisions are based on.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Resources are the stores of the built-in resources.
func (s *Server) Resources() *resources.Set { return s.resources }

// Storage is what they are built on: etcd's content, decrypted.
func (s *Server) Storage() storage.Interface { return s.backend.Storage }

// Etcd is the client that Storage uses.
func (s *Server) Etcd() *clientv3.Client { return s.backend.Client }

// Files are the configuration files that are watched.
func (s *Server) Files() []*configfile.Follower { return s.files }
