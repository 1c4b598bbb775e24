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
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/adminaccess"
	"kctl/apiserver/internal/admission/certificates"
	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/admission/priority"
	"kctl/apiserver/internal/aggregation"
	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/authz/rbac/escalation"
	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/configfile"
	"kctl/apiserver/internal/customresources"
	"kctl/apiserver/internal/facts"
	"kctl/apiserver/internal/filters"
	"kctl/apiserver/internal/gcpace"
	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources"
	"kctl/apiserver/internal/resources/kubelet"
	"kctl/apiserver/internal/resources/service"
	"kctl/apiserver/internal/server/authentication"
	"kctl/apiserver/internal/server/authorization"
	"kctl/apiserver/internal/server/fairshare"
	"kctl/apiserver/internal/server/serving"
	"kctl/apiserver/internal/signing"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/backend"
	"kctl/apiserver/internal/storage/encrypt"
	"kctl/apiserver/internal/storage/measured"
	"kctl/apiserver/internal/trace"
	"kctl/proto/daemon"
)

// Controllers are the names of the housekeeping loops.
func Controllers() []string { return housekeeping.Names() }

// Server is one API server.
type Server struct {
	options *config.Options
	clock   clock.WithTicker
	logger  *zap.Logger
	metrics *prometheus.Registry
	health  *daemon.Health
	tls     *tls.Config

	backend     *backend.Backend
	resources   *resources.Set
	served      []registry.Served
	admission   *admission.Chain
	identities  *authentication.Authentication
	authorizer  authz.Union
	rules       *rbac.Follower
	pods        *facts.Mirror[facts.Pod]
	priorities  *facts.Mirror[priority.Class]
	ring        *trace.Ring
	auditor     *audit.Auditor       // nil for none
	transformer *encrypt.Transformer // nil for none
	spaceRules  *rulesOfSpaces
	userRules   *rulesOfUsers
	fairness    *fairshare.Share // nil for none
	files       []*configfile.Follower
	loops       []housekeeping.Loop // of the house, for the first time that this server leads
	besides     []housekeeping.Loop // and those that remember nothing, for every time
	house       housekeeping.Dependencies
	drain       *filters.Drain
	definitions *customresources.Definitions
	port        int // that is listened on, once it is
	aggregator  *aggregation.Aggregator
	builtin     []schema.GroupVersion // what handler serves

	// ready is closed when all that decisions are based on has been read.
	ready chan struct{}
	// bootstrapped is closed when what every cluster has is stored.
	bootstrapped chan struct{}
	// stopping is closed when the server has been told to stop, and draining
	// ends when its streams have to.
	stopping   chan struct{}
	draining   context.Context
	endStreams context.CancelFunc
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

// New puts a server together and opens its storage; nothing runs yet. Unless
// it fails, the caller calls Run and then closes the storage.
func New(ctx context.Context, o *config.Options, clock clock.WithTicker, logger *zap.Logger) (*Server, error) {
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	s := &Server{
		options: o, clock: clock, logger: logger,
		metrics: daemon.NewRegistry(), health: daemon.NewHealth(), ring: trace.NewRing(trace.Capacity),
		drain: filters.NewDrain(),
		ready: make(chan struct{}), bootstrapped: make(chan struct{}), stopping: make(chan struct{}),
	}
	s.draining, s.endStreams = context.WithCancel(context.Background())
	certificate, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.assemble(certificate); err != nil {
		return nil, errors.Join(err, s.backend.Close())
	}
	return s, nil
}

// open prepares what the server stands on. It returns the file of the serving
// certificate.
func (s *Server) open(ctx context.Context) (certificate string, err error) {
	if s.tls, certificate, err = serving.TLS(s.options, s.clock, s.logger); err != nil {
		return "", err
	}
	transformer, err := s.encryption(ctx)
	if err != nil {
		return "", err
	}
	s.backend, err = backend.Open(ctx, backend.Options{Flags: s.options, Transformer: transformer, Metrics: measured.NewMetrics(s.metrics), Clock: s.clock, Logger: s.logger})
	return certificate, err
}

// assemble makes the rooms and introduces them to each other.
func (s *Server) assemble(certificate string) error {
	o := s.options
	addresses, ports, err := o.ServiceRanges()
	if err != nil {
		return err
	}
	s.resources = resources.New(s.registryOptions(),
		o.EventTTL, service.Ranges{Addresses: addresses, NodePorts: ports})
	s.definitions = s.customResources()
	if s.aggregator, err = s.newAggregator(); err != nil {
		return err
	}
	if s.identities, err = s.authentication(); err != nil {
		return err
	}
	if err := s.serveResources(s.identities.Issuer); err != nil {
		return err
	}
	s.pods = s.newPods()
	s.pods.OnChange(s.traceChange)
	rules := rbac.NewAuthorizer()
	s.rules = rbac.NewFollower(rules, rbac.Sources{
		Roles: s.resources.Roles, RoleBindings: s.resources.RoleBindings,
		ClusterRoles: s.resources.ClusterRoles, ClusterRoleBindings: s.resources.ClusterRoleBindings,
	}, s.clock, s.logger)
	if s.authorizer, err = s.authorization(rules); err != nil {
		return err
	}
	s.priorities = facts.NewMirror(s.resources.PriorityClasses, priority.ClassOf, facts.Options[priority.Class]{Index: priority.ByDefault}, s.clock, s.logger)
	chain, err := s.plugins()
	if err != nil {
		return err
	}
	s.admission = chain.With(
		escalation.Plugin{Rules: rules, Authorizer: s.authorizer}, certificates.PodSigning{Authorizer: s.authorizer},
		adminaccess.Plugin{Namespaces: lookup.New[*corev1.Namespace](s.resources.Namespaces)},
		filters.RelayAdmission{Clock: s.clock},
	)
	if s.auditor, err = s.newAuditor(); err != nil {
		return err
	}
	if s.auditor != nil {
		s.admission = s.admission.With(filters.AuditAdmission{})
	}
	if err := s.keepHouse(certificate); err != nil {
		return err
	}
	s.besides = []housekeeping.Loop{s.identities.Publisher(s.resources.ConfigMaps).Run, s.aggregator.Check, s.followDefinitions}
	s.shareFairly()
	s.watchHealth()
	return nil
}

func (s *Server) authentication() (*authentication.Authentication, error) {
	a, err := authentication.New(authentication.Options{
		Flags: s.options, Metrics: s.metrics, Clock: s.clock, Logger: s.logger,
		Objects: authentication.Objects{
			ServiceAccounts: s.resources.ServiceAccounts, Pods: s.resources.Pods, Secrets: s.resources.Secrets, Nodes: s.resources.Nodes, Logger: s.logger,
		},
	})
	if err == nil {
		s.files = append(s.files, a.Files...)
	}
	return a, err
}

func (s *Server) authorization(rules *rbac.Authorizer) (authz.Union, error) {
	union, files, err := authorization.New(authorization.Options{
		Flags: s.options, Rules: rules, Pods: s.pods, PodsChanged: s.resources.Pods.Changed, Stored: s.storedNow, Ready: s.ready,
		Metrics: s.metrics, Clock: s.clock, Logger: s.logger,
	})
	s.files = append(s.files, files...)
	return union, err
}

// serveResources makes what is served of the stores.
func (s *Server) serveResources(issuer *serviceaccount.Issuer) error {
	o := s.options
	types := make([]corev1.NodeAddressType, 0, len(o.KubeletPreferredAddressTypes))
	for _, t := range o.KubeletPreferredAddressTypes {
		types = append(types, corev1.NodeAddressType(t))
	}
	kubelets, err := kubelet.New(kubelet.Options{
		CertFile: o.KubeletClientCertificate, KeyFile: o.KubeletClientKey, CAFile: o.KubeletCertificateAuthority, AddressTypes: types,
		Timeout: o.KubeletTimeout,
	})
	if err != nil {
		return err
	}
	if issuer == nil { // not an interface that holds nil
		return s.choose(s.resources.Served(kubelets, nil))
	}
	return s.choose(s.resources.Served(kubelets, issuer))
}

// keepHouse makes the housekeeping loops.
func (s *Server) keepHouse(certificate string) error {
	file := s.options.RootCAFile
	if file == "" {
		file = certificate
	}
	rootCA, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("root certificate authority: %w", err)
	}
	d := housekeeping.Dependencies{NodeGrace: s.options.NodeMonitorGrace, LegacyTokenPeriod: s.options.LegacyTokenPeriod, Pods: s.pods, Books: s.spaceRules.books, RootCA: rootCA, Metrics: s.metrics, Clock: s.clock, Logger: s.logger}
	if err := s.signTokensAndCertificates(&d); err != nil {
		return err
	}
	if d.PodRanges, err = s.options.NodeRanges.Ranges(); err != nil {
		return err
	}
	if d.ServiceRanges, _, err = s.options.ServiceRanges(); err != nil {
		return err
	}
	for _, served := range s.served {
		// What is only another form of stored objects needs no loops of its own.
		if info := served.Resource.Info(); info.StoredAs == info.GVK() {
			d.Resources = append(d.Resources, served.Resource)
		}
	}
	d.More, d.Others = s.definitions, s.aggregator
	s.house = d
	s.loops, err = housekeeping.New(d, s.options.Controller)
	return err
}

// signTokensAndCertificates gives the housekeeping loops what they sign with.
func (s *Server) signTokensAndCertificates(d *housekeeping.Dependencies) error {
	d.Authorizer = s.authorizer
	if s.identities.Issuer != nil {
		d.AccountTokens = s.identities.Issuer
	}
	if c := s.options.ClusterSigning; c.CertFile != "" {
		d.Signing = &signing.Authority{CertFile: c.CertFile, KeyFile: c.KeyFile, Longest: c.Duration}
		return d.Signing.Validate()
	}
	return nil
}

func (s *Server) newPods() *facts.Mirror[facts.Pod] {
	return facts.NewMirror(s.resources.Pods, facts.PodOf, facts.Options[facts.Pod]{Index: facts.PodNode}, s.clock, s.logger)
}

// Close closes the storage, after Run has ended.
func (s *Server) Close() error { return s.backend.Close() }

// Ready is closed when the server has read all that its decisions are based on.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Resources are the stores of everything that is built in.
func (s *Server) Resources() *resources.Set { return s.resources }

// Storage is below them: what is in etcd, decrypted.
func (s *Server) Storage() storage.Interface { return s.backend.Storage }

// Etcd is the client that Storage uses.
func (s *Server) Etcd() *clientv3.Client { return s.backend.Client }

// Files are the configuration files that are followed.
func (s *Server) Files() []*configfile.Follower { return s.files }

// Run serves until ctx ends, and drains.
func (s *Server) Run(ctx context.Context) error {
	defer s.endStreams()
	listener, err := serving.Listen(ctx, s.options)
	if err != nil {
		return err
	}
	s.port = serving.Port(listener)
	handler, err := s.handler(listener.Addr().String())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	s.logger.Info("serving", zap.Stringer("address", listener.Addr()), zap.String("version", daemon.Version().GitVersion))
	port := &serving.Server{
		Flags: s.options, TLS: s.tls, Stopping: func() { close(s.stopping) }, EndStreams: s.endStreams, Drain: s.drain, Clock: s.clock, Logger: s.logger,
	}
	return s.run(ctx, func(ctx context.Context) error { return port.Serve(ctx, listener, s.withoutSlash(handler)) })
}

// run runs the loops for as long as requests are served, and ends serving when
// a loop fails.
func (s *Server) run(ctx context.Context, serve func(context.Context) error) error {
	group, failed := errgroup.WithContext(context.WithoutCancel(ctx))
	loops, stopLoops := context.WithCancel(failed)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(failed, cancel)()

	for _, loop := range s.allLoops() {
		group.Go(func() error {
			if err := loop(loops); loops.Err() == nil {
				return err
			}
			return nil
		})
	}
	group.Go(func() error {
		defer stopLoops()
		return serve(ctx)
	})
	return group.Wait()
}

func (s *Server) allLoops() []housekeeping.Loop {
	loops := []housekeeping.Loop{s.resources.Run, s.definitions.Run, s.aggregator.Run, s.rules.Run, s.pods.Run, s.priorities.Run, s.start, s.watchBackend, s.watchdog, s.lead, s.beFound}
	if s.options.Operation.CompactionInterval > 0 {
		loops = append(loops, s.backend.Compactor.Run)
	}
	loops = append(loops, s.encryptionLoops()...)
	if s.auditor != nil {
		loops = append(loops, s.auditor.Run)
	}
	loops = append(loops, s.spaceRules.loops()...)
	loops = append(loops, s.userRules.loops()...)
	if s.fairness != nil {
		loops = append(loops, s.fairness.Run)
	}
	for _, file := range s.files {
		loops = append(loops, file.Run)
	}
	return loops
}

// watchBackend ends the server where its embedded etcd ended.
func (s *Server) watchBackend(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-s.backend.Failed:
		return fmt.Errorf("embedded etcd: %w", err)
	}
}

func wait(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-done:
		return true
	}
}
