package quota

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// attempts bounds attempts at writing to a contended quota, each of which is
// several in the store.
const attempts = 5

// Quotas finds the quotas of a namespace; lookup.Scoped does.
type Quotas interface {
	In(ctx context.Context, namespace string) ([]*corev1.ResourceQuota, error)
	Forget(namespace string)
}

// Options are what a Usage is built from.
type Options struct {
	Quotas Quotas
	// Store is the store of resource quotas.
	Store registry.Resource
	// Stores are the present stores of everything that can be counted.
	Stores func() []registry.Resource
	Clock  clock.PassiveClock
}

// Usage maintains the usage of every quota in its status: what is stored, plus
// the reservations of requests in flight. It is safe for concurrent use.
type Usage struct {
	Options
	reservations reservations
	locks        namespaceLocks
	written      lastWritten
}

// NewUsage returns a Usage; it starts nothing.
func NewUsage(o Options) *Usage {
	return &Usage{
		Options: o, locks: namespaceLocks{locks: map[string]*namespaceLock{}}, written: lastWritten{lru.New(maxRemembered)},
		reservations: reservations{byQuota: map[informer.Key]map[*corev1.ResourceList]struct{}{}, listeners: map[*func(informer.Key)]struct{}{}},
	}
}

// OnReservationEnd adds a function to be called when a request with a reservation has
// ended, until forget is called. The function has to find out whether the object
// was stored.
func (u *Usage) OnReservationEnd(callback func(quota informer.Key)) (forget func()) {
	u.reservations.mu.Lock()
	defer u.reservations.mu.Unlock()
	u.reservations.listeners[&callback] = struct{}{}
	return func() {
		u.reservations.mu.Lock()
		defer u.reservations.mu.Unlock()
		delete(u.reservations.listeners, &callback)
	}
}

// Change is what is about to be stored.
type Change struct {
	Resource         schema.GroupResource
	Namespace        string
	New, Old         core.Object // Old is nil for a new object
	DryRun           bool
	LimitedResources []LimitedResource
}

// Reserve charges the change to every quota that it counts against, or refuses
// it. The reservation lasts until ctx, the request's, has ended: by then the
// change is stored or never will be.
func (u *Usage) Reserve(ctx context.Context, c Change) error {
	quotas, err := u.Quotas.In(ctx, c.Namespace)
	if err != nil || len(quotas) == 0 && len(c.LimitedResources) == 0 {
		return err
	}
	charges, err := u.chargesFor(c, quotas)
	if err != nil || len(charges) == 0 {
		return err
	}
	mine := &claim{ctx: ctx, charges: charges, dry: c.DryRun, served: make(chan struct{})}
	give, err := u.locks.acquire(ctx, c.Namespace, mine)
	if err != nil {
		return err
	}
	if give != nil {
		defer give()
		u.serve(ctx, u.locks.takeClaims(c.Namespace))
	}
	<-mine.served
	return mine.err
}

// chargesFor is what the change costs, by quota.
func (u *Usage) chargesFor(c Change, quotas []*corev1.ResourceQuota) ([]charge, error) {
	now := u.Clock.Now()
	will := usageOf(c.Resource, c.New, now)
	var had corev1.ResourceList
	if c.Old != nil {
		had = usageOf(c.Resource, c.Old, now)
	}
	if len(excess(will, had)) > 0 {
		if err := c.checkCovered(will, quotas); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(quotas, func(x, y *corev1.ResourceQuota) int { return cmp.Compare(x.Name, y.Name) })
	var charges []charge
	for _, q := range quotas {
		if !scopesMatch(q, c.New) {
			continue
		}
		if pod, ok := c.New.(*core.Pod); ok && c.Old == nil {
			if text := unspecified(q, pod); text != "" {
				return nil, fmt.Errorf("failed quota: %s: must specify %s", q.Name, text)
			}
		}
		was := had
		if c.Old != nil && !scopesMatch(q, c.Old) {
			was = nil
		}
		if amounts := excess(withNames(will, q.Spec.Hard), was); len(amounts) > 0 {
			charges = append(charges, charge{informer.Key{Namespace: c.Namespace, Name: q.Name}, amounts})
		}
	}
	return charges, nil
}

// updateStatus changes the status of a quota in the name of a field manager; if the
// quota is gone, there is nothing to do.
func (u *Usage) updateStatus(ctx context.Context, key informer.Key, manager string, change func(q *corev1.ResourceQuota) error) error {
	var q *corev1.ResourceQuota
	var err error
	for range attempts {
		_, _, err = u.Store.Update(ctx, registry.Target{Namespace: key.Namespace, Name: key.Name, Subresource: "status"},
			func(current core.Object) (core.Object, error) {
				q = current.(*corev1.ResourceQuota)
				if q.Status.Used == nil {
					q.Status.Used = corev1.ResourceList{}
				}
				return q, change(q)
			}, registry.Admission{FieldManager: manager}, &metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		u.written.record(q)
	}
	return err
}

// isStatusCurrent: the status is of this spec.
func isStatusCurrent(q *corev1.ResourceQuota) bool {
	if !equalAmounts(q.Spec.Hard, q.Status.Hard) {
		return false
	}
	for name := range q.Spec.Hard {
		if _, ok := resourceCountedBy(name); !ok {
			continue
		}
		if _, ok := q.Status.Used[name]; !ok {
			return false
		}
	}
	return true
}

// recount sets the status to what is stored and reserved.
func (u *Usage) recount(ctx context.Context, q *corev1.ResourceQuota, key informer.Key) error {
	// In this order, what is stored in between is briefly counted twice rather
	// than missed.
	reserved := u.reservations.sum(key)
	used, err := u.count(ctx, q)
	if err != nil {
		return err
	}
	addAmounts(used, reserved)
	q.Status.Hard, q.Status.Used = q.Spec.Hard, used
	return nil
}

// Recount counts again what a quota's objects use. reserved reports whether
// that includes reservations of requests in flight.
func (u *Usage) Recount(ctx context.Context, key informer.Key) (reserved bool, err error) {
	give, err := u.locks.acquire(ctx, key.Namespace, nil)
	if err != nil {
		return false, err
	}
	defer give()
	err = u.updateStatus(ctx, key, registry.ControllerManager, func(q *corev1.ResourceQuota) error {
		reserved = len(u.reservations.sum(key)) > 0
		return u.recount(ctx, q, key)
	})
	return reserved, err
}

// count is what the stored objects use of a quota.
func (u *Usage) count(ctx context.Context, q *corev1.ResourceQuota) (corev1.ResourceList, error) {
	used := corev1.ResourceList{}
	counted := map[schema.GroupResource]bool{}
	for name, hard := range q.Spec.Hard {
		if of, ok := resourceCountedBy(name); ok {
			counted[of] = true
			nothing := hard.DeepCopy()
			nothing.Sub(hard)
			used[name] = nothing
		}
	}
	for _, store := range u.Stores() {
		r := store.Info().Resource
		of := schema.GroupResource{Group: r.Group, Resource: r.Name}
		if !counted[of] {
			continue
		}
		counted[of] = false // of several versions, one is enough
		if err := u.addUsage(ctx, store, of, q, used); err != nil {
			return nil, err
		}
	}
	return used, nil
}

func (u *Usage) addUsage(ctx context.Context, store registry.Resource, of schema.GroupResource, q *corev1.ResourceQuota,
	used corev1.ResourceList) error {
	list, err := store.List(ctx, q.Namespace, registry.ListOptions{})
	if err != nil {
		return err
	}
	now := u.Clock.Now()
	for _, item := range list.Items {
		obj := item.Object
		if obj == nil {
			if obj, err = store.Decode(item); err != nil {
				return fmt.Errorf("counting %s: %w", of, err)
			}
		}
		if scopesMatch(q, obj) {
			addAmounts(used, withNames(usageOf(of, obj, now), q.Spec.Hard))
		}
	}
	return nil
}

// MayChangeUsage reports whether an event for a resource may change the usage
// of q.
func MayChangeUsage(q *corev1.ResourceQuota, of schema.GroupResource) bool {
	for name := range q.Spec.Hard {
		if counted, ok := resourceCountedBy(name); ok && counted == of {
			return true
		}
	}
	return false
}

// UsageCanChange reports whether the usage of a resource's objects can change during
// their life.
func UsageCanChange(of schema.GroupResource) bool {
	return of == pods || of == services || of == claims
}

// SameSpec reports whether two quotas have the same spec.
func SameSpec(a, b *corev1.ResourceQuota) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec)
}
