package server

import (
	"context"

	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources"
	"kctl/apiserver/internal/storage/backend"
	"kctl/apiserver/internal/storage/encrypt"
	"kctl/apiserver/internal/storage/etcd"
	"kctl/apiserver/internal/storage/measured"
	"kctl/proto/daemon"
)

// database is where objects are kept: etcd, and how values are encrypted there.
type database struct {
	*process
	backend     *backend.Backend
	transformer *encrypt.Transformer // nil for none
}

// openDatabase opens the storage. The caller closes the backend.
func openDatabase(ctx context.Context, p *process) (*database, error) {
	d := &database{process: p}
	var transformer etcd.Transformer
	if o := p.options.Encryption; o.File != "" {
		var err error
		if d.transformer, err = encrypt.New(ctx, o.File, p.clock, p.metrics, p.logger); err != nil {
			return nil, err
		}
		transformer = d.transformer
		// not /livez: a restart would not bring back a KMS plugin that is away
		p.health.Add("kms-providers", d.transformer.Check, daemon.Healthz, daemon.Readyz)
	}
	var err error
	d.backend, err = backend.Open(ctx, backend.Options{
		Flags: p.options, Transformer: transformer, Forms: resources.Forms(), Metrics: measured.NewMetrics(p.metrics), Tracer: p.tracer,
		Clock: p.clock, Logger: p.logger,
	})
	if err != nil {
		return nil, err
	}
	p.metrics.MustRegister(d.backend)
	return d, nil
}

// encryptionLoops are encryption's background loops.
func (d *database) encryptionLoops() []housekeeping.Loop {
	if d.transformer == nil {
		return nil
	}
	return []housekeeping.Loop{func(ctx context.Context) error { return d.transformer.Run(ctx, d.options.Encryption.Reload) }}
}

// registryOptions are the options of the resources' stores.
func (d *database) registryOptions() registry.Options {
	o := registry.Options{
		Storage: d.backend.Storage, Prefix: d.options.EtcdPrefix, CacheMetrics: measured.NewCacheMetrics(d.metrics),
		Conversions: registry.NewConversions(),
		Clock:       d.clock, Logger: d.logger,
	}
	if d.transformer != nil {
		o.OnPrefix = d.transformer.RegisterPrefix
	}
	return o
}
