package housekeeping

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/quota"
	"kctl/apiserver/internal/registry"
	"kctl/proto/backoff"
	"kctl/proto/core"
)

const (
	// deletedDelay and changedDelay are how long to wait after objects went or changed,
	// because more are likely to follow.
	deletedDelay = 100 * time.Millisecond
	changedDelay = time.Second
	// recountPeriod is how often every quota is counted again without any change;
	// upstream's.
	recountPeriod = 5 * time.Minute
)

// quotas counts the usage of resource quotas again when objects go or change.
// It watches only resources that some quota limits, and keeps none of their
// objects: without quotas it costs nothing.
type quotas struct {
	*Dependencies
	all       *informer.Informer[*corev1.ResourceQuota]
	usage     *quota.Usage
	worker    *worker
	retrigger chan struct{} // the set of resources to follow may have changed
}

func newQuotas(d *Dependencies) (Loop, error) {
	q := &quotas{Dependencies: d, retrigger: make(chan struct{}, 1)}
	resource := core.Resource{Version: "v1", Name: "resourcequotas", Kind: "ResourceQuota", Namespaced: true}
	options := informer.Options[*corev1.ResourceQuota]{Index: func(r *corev1.ResourceQuota) string { return r.Namespace }}
	var err error
	if q.all, _, err = newInformerWith(d, resource, whole[*corev1.ResourceQuota], options); err != nil {
		return nil, err
	}
	q.usage = d.QuotaUsage
	q.worker = newWorker("resourcequota-controller", d, several, q.sync)
	q.all.OnChange(func(key informer.Key, old, new **corev1.ResourceQuota) {
		if new != nil && (old == nil || !quota.SameSpec(*old, *new)) {
			q.worker.add(key)
			q.enqueueAll()
		}
		if new == nil {
			q.enqueueAll()
		}
	})
	return runTogether(q.all.Run, afterSync(q.worker.run, q.all.Synced()), afterSync(q.follow, q.all.Synced())), nil
}

func (q *quotas) enqueueAll() {
	select {
	case q.retrigger <- struct{}{}:
	default:
	}
}

func (q *quotas) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	if _, ok := q.all.Get(key.Namespace, key.Name); !ok {
		return 0, nil
	}
	reserved, err := q.usage.Recount(ctx, key)
	if reserved {
		return changedDelay, err
	}
	return recountPeriod, err
}

// follow watches every resource that some quota limits, as long as one does.
func (q *quotas) follow(ctx context.Context) error {
	defer q.usage.OnReservationEnd(func(key informer.Key) { q.worker.addAfter(key, changedDelay) })()
	var running sync.WaitGroup
	defer running.Wait()
	followed := map[schema.GroupResource]context.CancelFunc{}
	defer func() {
		for _, stop := range followed {
			stop()
		}
	}()
	if q.DynamicResources != nil {
		defer q.DynamicResources.OnChange(q.enqueueAll)()
	}
	for {
		wanted := q.limitedResources()
		for of, store := range wanted {
			if followed[of] == nil {
				one, stop := context.WithCancel(ctx)
				followed[of] = stop
				running.Go(func() { q.followResource(one, of, store) })
			}
		}
		for of, stop := range followed {
			if wanted[of] == nil {
				stop()
				delete(followed, of)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-q.retrigger:
		}
	}
}

// limitedResources are the resources that quotas limit.
func (q *quotas) limitedResources() map[schema.GroupResource]registry.Resource {
	wanted := map[schema.GroupResource]registry.Resource{}
	all := q.all.List()
	if len(all) == 0 {
		return wanted
	}
	stores := q.Resources
	if q.DynamicResources != nil {
		present, _ := q.DynamicResources.Resources()
		stores = append(stores[:len(stores):len(stores)], present...)
	}
	for _, store := range stores {
		r := store.Info().Resource
		of := schema.GroupResource{Group: r.Group, Resource: r.Name}
		for _, one := range all {
			if r.Namespaced && quota.MayChangeUsage(one, of) {
				wanted[of] = store
				break
			}
		}
	}
	return wanted
}

// followResource watches one resource until ctx ends.
func (q *quotas) followResource(ctx context.Context, of schema.GroupResource, store registry.Resource) {
	for failures := 1; ctx.Err() == nil; failures++ {
		err := q.watch(ctx, of, store)
		if ctx.Err() != nil {
			return
		}
		q.Logger.Debug("following what a quota is about, again", zap.Stringer("resource", of), zap.Error(err))
		_ = backoff.Sleep(ctx, q.Clock, retryPolicy.Delay(failures))
		// Changes in between were not seen.
		q.all.Each(func(key informer.Key, one *corev1.ResourceQuota) {
			if quota.MayChangeUsage(one, of) {
				q.worker.add(key)
			}
		})
	}
}

func (q *quotas) watch(ctx context.Context, of schema.GroupResource, store registry.Resource) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	now, err := store.List(ctx, "", registry.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	watcher, err := store.Watch(ctx, "", registry.ListOptions{ResourceVersion: now.ResourceVersion})
	if err != nil {
		return err
	}
	changing := quota.UsageCanChange(of)
	for event := range watcher.Events() {
		soon := deletedDelay
		switch {
		case event.Type == "DELETED":
		case event.Type == "MODIFIED" && changing:
			soon = changedDelay
		default:
			continue
		}
		obj := event.Object.Object
		if obj == nil {
			if obj, err = store.Decode(event.Object); err != nil {
				return err
			}
		}
		for _, one := range q.all.ByIndex(obj.GetNamespace()) {
			if quota.MayChangeUsage(one, of) {
				q.worker.addAfter(informer.Key{Namespace: one.Namespace, Name: one.Name}, soon)
			}
		}
	}
	return nil
}
