package quota

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/facts"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// attempts are made at writing to a quota that others write to as well, each
// of which is several in the store.
const attempts = 5

// Quotas finds the quotas of a namespace; lookup.Scoped does.
type Quotas interface {
	In(ctx context.Context, namespace string) ([]*corev1.ResourceQuota, error)
	Forget(namespace string)
}

// Options are what the books are kept with.
type Options struct {
	Quotas Quotas
	// Store is the resource quotas'.
	Store registry.Resource
	// Stores are those of everything that may be counted, as of now.
	Stores func() []registry.Resource
	Clock  clock.PassiveClock
}

// Books say what is used of every quota.
type Books struct {
	Options
	ledger ledger
	turns  turns
}

// NewBooks returns the books.
func NewBooks(o Options) *Books {
	return &Books{
		Options: o, turns: turns{taken: map[string]*turn{}},
		ledger: ledger{open: map[facts.Key]map[*corev1.ResourceList]struct{}{}, closed: map[*func(facts.Key)]struct{}{}},
	}
}

// OnClosed adds somebody to be told when a request has ended that had reserved
// of a quota, until forget is called: whether what it was for has been stored is
// for them to see.
func (b *Books) OnClosed(told func(quota facts.Key)) (forget func()) {
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	b.ledger.closed[&told] = struct{}{}
	return func() {
		b.ledger.mu.Lock()
		defer b.ledger.mu.Unlock()
		delete(b.ledger.closed, &told)
	}
}

// Change is what is about to be stored.
type Change struct {
	Resource  schema.GroupResource
	Namespace string
	New, Old  core.Object // Old is nil for a new object
	Dry       bool
}

// charge is what a change uses of one quota beyond what is used already.
type charge struct {
	quota   facts.Key
	amounts corev1.ResourceList
}

// Reserve writes down what the change will use of every quota that it counts
// for, or refuses it. What is reserved stays so until ctx, which is the
// request's, has ended: then the change is stored or will never be.
func (b *Books) Reserve(ctx context.Context, c Change) error {
	quotas, err := b.Quotas.In(ctx, c.Namespace)
	if err != nil || len(quotas) == 0 {
		return err
	}
	charges, err := b.charges(c, quotas)
	if err != nil || len(charges) == 0 {
		return err
	}
	give, err := b.turns.take(ctx, c.Namespace)
	if err != nil {
		return err
	}
	defer give()
	for i, one := range charges {
		if err := b.put(ctx, one, c.Dry); err != nil {
			return errors.Join(err, b.giveBack(ctx, charges[:i], c.Dry))
		}
	}
	return nil
}

// charges is what the change costs, by quota.
func (b *Books) charges(c Change, quotas []*corev1.ResourceQuota) ([]charge, error) {
	now := b.Clock.Now()
	will := uses(c.Resource, c.New, now)
	var had corev1.ResourceList
	if c.Old != nil {
		had = uses(c.Resource, c.Old, now)
	}
	slices.SortFunc(quotas, func(x, y *corev1.ResourceQuota) int { return cmp.Compare(x.Name, y.Name) })
	var charges []charge
	for _, q := range quotas {
		if !applies(q, c.New) {
			continue
		}
		if pod, ok := c.New.(*core.Pod); ok && c.Old == nil {
			if text := unsaid(q, pod); text != "" {
				return nil, fmt.Errorf("failed quota: %s: must specify %s", q.Name, text)
			}
		}
		was := had
		if c.Old != nil && !applies(q, c.Old) {
			was = nil
		}
		if amounts := more(only(will, q.Spec.Hard), was); len(amounts) > 0 {
			charges = append(charges, charge{facts.Key{Namespace: c.Namespace, Name: q.Name}, amounts})
		}
	}
	return charges, nil
}

var errRefused = errors.New("refused")

// put reserves of one quota.
func (b *Books) put(ctx context.Context, c charge, dry bool) error {
	leave := b.ledger.enter(c.quota, c.amounts)
	var refused error
	err := b.write(ctx, c.quota, dry, func(q *corev1.ResourceQuota) error {
		refused = nil
		if !settled(q) {
			if err := b.settle(ctx, q, c.quota); err != nil {
				return err
			}
		} else {
			add(q.Status.Used, c.amounts)
		}
		if names := exceeds(q.Status.Used, q.Spec.Hard, c.amounts); len(names) > 0 {
			less(q.Status.Used, c.amounts)
			refused = fmt.Errorf("exceeded quota: %s, requested: %s, used: %s, limited: %s",
				q.Name, text(c.amounts, names), text(q.Status.Used, names), text(q.Spec.Hard, names))
			return errRefused
		}
		return nil
	})
	if refused != nil {
		err = refused
	}
	if err != nil || dry {
		leave()
		return err
	}
	context.AfterFunc(ctx, leave)
	return nil
}

// giveBack undoes reservations.
func (b *Books) giveBack(ctx context.Context, charges []charge, dry bool) error {
	if dry {
		return nil
	}
	var errs []error
	for _, c := range charges {
		errs = append(errs, b.write(ctx, c.quota, false, func(q *corev1.ResourceQuota) error {
			less(q.Status.Used, c.amounts)
			return nil
		}))
	}
	return errors.Join(errs...)
}

// write changes the status of a quota, which may be gone: then there is nothing
// to keep books of.
func (b *Books) write(ctx context.Context, key facts.Key, dry bool, change func(q *corev1.ResourceQuota) error) error {
	options := &metav1.UpdateOptions{}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	var err error
	for range attempts {
		_, _, err = b.Store.Update(ctx, registry.Target{Namespace: key.Namespace, Name: key.Name, Subresource: "status"}, func(current core.Object) (core.Object, error) {
			q := current.(*corev1.ResourceQuota)
			if q.Status.Used == nil {
				q.Status.Used = corev1.ResourceList{}
			}
			return q, change(q)
		}, registry.Admit{}, options)
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// settled: the status is of this spec.
func settled(q *corev1.ResourceQuota) bool {
	if !same(q.Spec.Hard, q.Status.Hard) {
		return false
	}
	for name := range q.Spec.Hard {
		if _, ok := Counted(name); !ok {
			continue
		}
		if _, ok := q.Status.Used[name]; !ok {
			return false
		}
	}
	return true
}

// settle makes the status what is stored and reserved.
func (b *Books) settle(ctx context.Context, q *corev1.ResourceQuota, key facts.Key) error {
	// In this order: what is stored in between is counted twice, for a moment,
	// and not missed.
	reserved := b.ledger.sum(key)
	used, err := b.count(ctx, q)
	if err != nil {
		return err
	}
	add(used, reserved)
	q.Status.Hard, q.Status.Used = q.Spec.Hard, used
	return nil
}

// Settle counts again what a quota's objects use. reserved tells whether some
// of it is of requests that have not ended.
func (b *Books) Settle(ctx context.Context, key facts.Key) (reserved bool, err error) {
	give, err := b.turns.take(ctx, key.Namespace)
	if err != nil {
		return false, err
	}
	defer give()
	err = b.write(ctx, key, false, func(q *corev1.ResourceQuota) error {
		reserved = len(b.ledger.sum(key)) > 0
		return b.settle(ctx, q, key)
	})
	return reserved, err
}

// count is what the stored objects use of a quota.
func (b *Books) count(ctx context.Context, q *corev1.ResourceQuota) (corev1.ResourceList, error) {
	used := corev1.ResourceList{}
	counted := map[schema.GroupResource]bool{}
	for name, hard := range q.Spec.Hard {
		if of, ok := Counted(name); ok {
			counted[of] = true
			nothing := hard.DeepCopy()
			nothing.Sub(hard)
			used[name] = nothing
		}
	}
	for _, store := range b.Stores() {
		r := store.Info().Resource
		of := schema.GroupResource{Group: r.Group, Resource: r.Name}
		if !counted[of] {
			continue
		}
		counted[of] = false // of several versions, one is enough
		if err := b.countOf(ctx, store, of, q, used); err != nil {
			return nil, err
		}
	}
	return used, nil
}

func (b *Books) countOf(ctx context.Context, store registry.Resource, of schema.GroupResource, q *corev1.ResourceQuota, used corev1.ResourceList) error {
	list, err := store.List(ctx, q.Namespace, registry.ListOptions{})
	if err != nil {
		return err
	}
	now := b.Clock.Now()
	for _, item := range list.Items {
		obj := item.Object
		if obj == nil {
			if obj, err = store.Decode(item); err != nil {
				return fmt.Errorf("counting %s: %w", of, err)
			}
		}
		if applies(q, obj) {
			add(used, only(uses(of, obj, now), q.Spec.Hard))
		}
	}
	return nil
}

// Matters tells whether an event of a resource may change what is used of q.
func Matters(q *corev1.ResourceQuota, of schema.GroupResource) bool {
	for name := range q.Spec.Hard {
		if counted, ok := Counted(name); ok && counted == of {
			return true
		}
	}
	return false
}

// Changing tells whether objects of a resource come to use more or less without
// coming or going.
func Changing(of schema.GroupResource) bool {
	return of == pods || of == services || of == claims
}

// SameSpec tells whether two quotas ask for the same.
func SameSpec(a, b *corev1.ResourceQuota) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec)
}
