package server

import (
	"context"

	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage/encrypt"
	"kctl/apiserver/internal/storage/etcd"
	"kctl/apiserver/internal/storage/measured"
	"kctl/proto/daemon"
)

// encryption makes the Transformer that --encryption-provider-config asks for.
// Without it the Transformer is nil, and values are stored in plain text.
func (s *Server) encryption(ctx context.Context) (etcd.Transformer, error) {
	o := s.options.Encryption
	if o.File == "" {
		return nil, nil
	}
	t, err := encrypt.New(ctx, o.File, s.clock, encrypt.NewMetrics(s.metrics), s.logger)
	if err != nil {
		return nil, err
	}
	s.transformer = t
	// not /livez: a restart would not bring back a KMS plugin that is away
	s.health.Add("kms-providers", t.Check, daemon.Healthz, daemon.Readyz)
	return t, nil
}

// encryptionLoops are encryption's background loops.
func (s *Server) encryptionLoops() []housekeeping.Loop {
	if s.transformer == nil {
		return nil
	}
	return []housekeeping.Loop{func(ctx context.Context) error { return s.transformer.Run(ctx, s.options.Encryption.Reload) }}
}

// registryOptions are the options of the resources' stores.
func (s *Server) registryOptions() registry.Options {
	o := registry.Options{
		Storage: s.backend.Storage, Prefix: s.options.EtcdPrefix, CacheMetrics: measured.NewCacheMetrics(s.metrics), Conversions: registry.NewConversions(),
		Clock: s.clock, Logger: s.logger,
	}
	if s.transformer != nil {
		o.OnPrefix = s.transformer.RegisterPrefix
	}
	return o
}
