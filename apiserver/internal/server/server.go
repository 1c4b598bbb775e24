package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/configfile"
	"kctl/apiserver/internal/gcpace"
	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/housekeeping/leading"
	"kctl/apiserver/internal/resources"
	"kctl/apiserver/internal/server/serving"
	"kctl/apiserver/internal/storage"
)

// Controllers are the names of the housekeeping loops.
func Controllers() []string { return housekeeping.Names() }

// Server is one API server. Each of its parts is made from those before it.
type Server struct {
	*process
	database    *database
	objects     *objects
	access      *access
	policy      *policy
	endpoint    *endpoint
	stamps      *stamps
	surface     *surface
	presence    *presence
	housekeeper *leading.Housekeeper
	tls         *tls.Config
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
	tls, certificate, err := serving.TLS(o, clock, logger)
	if err != nil {
		return nil, err
	}
	process, err := newProcess(ctx, o, clock, logger)
	if err != nil {
		return nil, err
	}
	database, err := openDatabase(ctx, process)
	if err != nil {
		return nil, err
	}
	s, err := assemble(database, certificate)
	if err != nil {
		return nil, errors.Join(err, database.backend.Close())
	}
	s.tls = tls
	return s, nil
}

// assemble makes the server's parts: what is stored, who may do what with it, what
// becomes of a request, what clients see, and what runs beside the requests.
// certificate is the file of the serving certificate.
func assemble(database *database, certificate string) (*Server, error) {
	objects, err := newObjects(database)
	if err != nil {
		return nil, err
	}
	identities, err := newIdentities(objects)
	if err != nil {
		return nil, err
	}
	api, err := newAPI(objects, identities.Issuer)
	if err != nil {
		return nil, err
	}
	access, err := newAccess(api, identities)
	if err != nil {
		return nil, err
	}
	policy, err := newPolicy(api, access)
	if err != nil {
		return nil, err
	}
	endpoint := &endpoint{process: database.process}
	stamps := newStamps(database, access.pods, endpoint)
	surface := newSurface(api, access, policy, stamps, endpoint)
	presence := &presence{process: database.process, objects: objects, endpoint: endpoint}
	housekeeper, err := newHousekeeper(surface, presence, certificate)
	if err != nil {
		return nil, err
	}
	addChecks(objects)
	return &Server{
		process: database.process, database: database, objects: objects, access: access, policy: policy, endpoint: endpoint, stamps: stamps,
		surface: surface, presence: presence, housekeeper: housekeeper,
	}, nil
}

// Close closes the storage, and sends the last spans, after Run has ended.
func (s *Server) Close() error {
	return errors.Join(s.database.backend.Close(), s.tracer.Close())
}

// Ready is closed when the server has read everything that its decisions are based on.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Resources are the stores of the built-in resources.
func (s *Server) Resources() *resources.Set { return s.objects.resources }

// Storage is what they are built on: etcd's content, decrypted.
func (s *Server) Storage() storage.Interface { return s.database.backend.Storage }

// Etcd is the client that Storage uses.
func (s *Server) Etcd() *clientv3.Client { return s.database.backend.Client }

// Files are the configuration files that are watched.
func (s *Server) Files() []*configfile.Follower {
	return slices.Concat(s.access.files, s.policy.admission.Files)
}
