package aggregation

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/discovery"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/apiservice"
	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/pki"
)

// Options are what an Aggregator is built from.
type Options struct {
	Store                    *registry.Store[*apiservice.APIService]
	Services, EndpointSlices registry.Resource
	// CertFile and KeyFile are the client certificate for other servers, which
	// trust its bearer to name the user; empty for none.
	CertFile, KeyFile string
	// ToEndpoints: services are reached through their endpoints instead of the
	// cluster IP, which may not be routable from where the server runs.
	ToEndpoints bool
	// Draining ends upgraded connections.
	Draining context.Context
	Metrics  prometheus.Registerer
	Clock    clock.WithTicker
	Logger   *zap.Logger
}

// Aggregator knows which groups and versions other servers serve. It is safe
// for concurrent use.
type Aggregator struct {
	options           Options
	logger            *zap.Logger
	clientCertificate *pki.Reloader // nil for none
	metrics           *metrics
	informer          *informer.Informer[*apiservice.APIService]
	services          *lookup.Objects[*corev1.Service]
	resolved          sync.Map // serviceName → *resolved, of the services of APIServices

	// remotes and priorities are replaced, never changed.
	remotes            atomic.Pointer[map[schema.GroupVersion]*remote]
	priorities         atomic.Pointer[map[string]discovery.Priority]
	discoveryChanges   atomic.Int64 // counts changes of what discovery says
	descriptionChanges atomic.Int64 // and of what OpenAPI does

	// Listeners are told when other servers, or what they serve, may have changed.
	informer.Listeners
}

// New returns an Aggregator that knows nothing until Run.
func New(o Options) (*Aggregator, error) {
	a := &Aggregator{
		options: o, logger: o.Logger.Named("aggregation"), metrics: newMetrics(o.Metrics), services: lookup.New[*corev1.Service](o.Services),
	}
	if o.CertFile != "" {
		shown, err := daemon.Certificate(o.CertFile, o.KeyFile, o.Clock, a.logger)
		if err != nil {
			return nil, errors.Join(errors.New("--proxy-client-cert-file, --proxy-client-key-file"), err)
		}
		a.clientCertificate = shown
	}
	a.remotes.Store(&map[schema.GroupVersion]*remote{})
	a.priorities.Store(&map[string]discovery.Priority{})
	a.informer = informer.New(o.Store, func(obj core.Object) *apiservice.APIService { return obj.(*apiservice.APIService) },
		informer.Options[*apiservice.APIService]{}, o.Clock, a.logger)
	a.informer.OnChange(a.applyChange)
	return a, nil
}

// Run follows the APIServices and their servers' documents until ctx ends.
// Every API server runs it.
func (a *Aggregator) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.informer.Run(ctx) })
	group.Go(func() error { return a.forEach(ctx, a.keepReading) })
	return group.Wait()
}

// Synced is closed when all APIServices have been read.
func (a *Aggregator) Synced() <-chan struct{} { return a.informer.Synced() }

// applyChange applies one change. Only the informer's goroutine calls it.
func (a *Aggregator) applyChange(_ informer.Key, old, now **apiservice.APIService) {
	a.metrics.observeChange(old, now)
	remotes, priorities := maps.Clone(*a.remotes.Load()), maps.Clone(*a.priorities.Load())
	if old != nil {
		gv := apiservice.GroupVersion(*old)
		delete(priorities, gv.String())
		if r := remotes[gv]; r != nil && (now == nil || !r.isFor(*now)) {
			delete(remotes, gv)
			r.closeIdle()
			a.resolved.Delete(r.service)
			a.descriptionChanges.Add(1)
		}
	}
	if now != nil {
		s := *now
		gv := apiservice.GroupVersion(s)
		priorities[gv.String()] = discovery.Priority{Group: s.Spec.GroupPriorityMinimum, Version: s.Spec.VersionPriority}
		if s.Spec.Service != nil && !scheme.Scheme.IsVersionRegistered(gv) {
			if remotes[gv] == nil {
				remotes[gv] = a.newRemote(s)
			}
			if available := apiservice.IsAvailable(s); remotes[gv].available.Swap(available) != available && available {
				remotes[gv].availableCount.Add(1)
			}
		}
	}
	a.remotes.Store(&remotes)
	a.priorities.Store(&priorities)
	a.discoveryChanges.Add(1)
	a.Notify()
}

// subscribe returns a channel that signals changes of APIServices, or of their
// servers' documents.
func (a *Aggregator) subscribe() (changed <-chan struct{}, forget func()) {
	c := make(chan struct{}, 1)
	return c, a.OnChange(func() { signal(c) })
}

// signal is neither lost nor doubled if no one is receiving yet.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// forEach runs work for every remote group and version, each in a goroutine of
// its own, while it exists and until ctx ends.
func (a *Aggregator) forEach(ctx context.Context, work func(ctx context.Context, r *remote)) error {
	changed, forget := a.subscribe()
	defer forget()
	var running sync.WaitGroup
	defer running.Wait()
	started := map[*remote]context.CancelFunc{}
	for {
		remotes := *a.remotes.Load()
		for _, r := range remotes {
			if started[r] == nil {
				working, cancel := context.WithCancel(ctx)
				started[r] = cancel
				running.Go(func() { work(working, r) })
			}
		}
		for r, cancel := range started {
			if remotes[r.GroupVersion] != r {
				cancel()
				delete(started, r)
			}
		}
		select {
		case <-ctx.Done():
			for _, cancel := range started {
				cancel()
			}
			return ctx.Err()
		case <-changed:
		}
	}
}
