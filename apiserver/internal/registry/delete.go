package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/storage"
	"kctl/proto/core"
)

// deletion is one call of Delete.
type deletion[T core.Object] struct {
	basis[T]
	admit          Admission
	options        *metav1.DeleteOptions
	requestedGrace *int64 // the grace period that the client wants; options hold the one that admission sees
	dry            bool

	// terminationForced: a write of this call has told whatever runs the object (a kubelet)
	// that no time is left. With that, the deletion has begun.
	terminationForced bool
}

// Delete implements Resource.
func (s *Store[T]) Delete(ctx context.Context, namespace, name string, admit Admission, o *metav1.DeleteOptions) (Encoded, bool, error) {
	if o == nil {
		o = &metav1.DeleteOptions{}
	}
	if ptr.Deref(o.GracePeriodSeconds, 0) < 0 {
		o.GracePeriodSeconds = new(int64(1))
	}
	if ptr.Deref(o.IgnoreStoreReadErrorWithClusterBreakingPotential, false) {
		err := s.deleteUnreadable(ctx, s.key(namespace, name), name, dryRun(o.DryRun))
		return Encoded{}, err == nil, s.statusOf(err, "delete", name)
	}
	d := &deletion[T]{
		basis: basis[T]{store: s, key: s.key(namespace, name)}, admit: admit, options: o, requestedGrace: o.GracePeriodSeconds,
		dry: dryRun(o.DryRun),
	}
	if err := d.read(ctx); err != nil {
		return Encoded{}, false, s.statusOf(err, "delete", name)
	}
	for range updateAttempts {
		result, gone, err := d.try(ctx)
		switch {
		case err == nil:
			return result, gone, nil
		case errors.Is(err, storage.ErrConflict):
			continue
		case d.fresh, errors.Is(err, storage.ErrUnavailable):
			return Encoded{}, false, s.statusOf(err, "delete", name)
		}
		// The cache may be behind, so only etcd's state is a reason to refuse. But if
		// etcd did not answer, the state read now may already be this deletion's own
		// work.
		changed, readErr := d.reread(ctx)
		if readErr != nil {
			return Encoded{}, false, s.statusOf(readErr, "delete", name)
		}
		if !changed { // it is not, and admission is not asked twice
			return Encoded{}, false, s.statusOf(err, "delete", name)
		}
	}
	return Encoded{}, false, s.conflict(name)
}

// try deletes the base, or marks it.
func (d *deletion[T]) try(ctx context.Context) (e Encoded, gone bool, err error) {
	obj, err := d.store.decode(d.base.Value)
	if err != nil {
		return Encoded{}, false, err
	}
	if err := d.checkPreconditions(obj); err != nil {
		return Encoded{}, false, err
	}
	if d.inShorterGracePeriod(obj) {
		return encoded(d.base), false, nil
	}
	d.options.GracePeriodSeconds = d.requestedGrace
	if grace := d.store.strategy.Delete.GracePeriod; grace != nil && obj.GetDeletionTimestamp() == nil {
		seconds, _ := grace(obj, d.requestedGrace)
		d.options.GracePeriodSeconds = &seconds
	}
	if err := d.runAdmission(ctx, obj); err != nil {
		return Encoded{}, false, err
	}
	finalizersChanged := d.setFinalizers(obj)
	switch d.decideAndMark(obj) {
	case remove:
		return d.remove(ctx, obj)
	case mark:
		return d.write(ctx, obj)
	}
	if finalizersChanged {
		return d.write(ctx, obj)
	}
	return encoded(d.base), false, nil
}

func (d *deletion[T]) checkPreconditions(obj T) error {
	asked := d.options.Preconditions
	if d.terminationForced && asked != nil { // the version that was meant has been replaced since
		asked = &metav1.Preconditions{UID: asked.UID}
	}
	return Preconditions(d.store.strategy.Resource, obj, asked)
}

// Preconditions returns a conflict for an object that is not the one that was
// meant.
func Preconditions(r core.Resource, obj core.Object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	conflict := func(format string, args ...any) error {
		return apierrors.NewConflict(schema.GroupResource{Group: r.Group, Resource: r.Kind}, obj.GetName(), fmt.Errorf(format, args...))
	}
	if p.UID != nil && *p.UID != obj.GetUID() {
		return conflict("the UID in the precondition (%s) does not match the UID in record (%s). The object might have "+
			"been deleted and then recreated", *p.UID, obj.GetUID())
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != obj.GetResourceVersion() {
		return conflict("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The "+
			"object might have been modified", *p.ResourceVersion, obj.GetResourceVersion())
	}
	return nil
}

// inShorterGracePeriod reports whether obj is already in a grace period that this deletion
// does not shorten: then nothing changes, and admission is not asked.
func (d *deletion[T]) inShorterGracePeriod(obj T) bool {
	has := obj.GetDeletionGracePeriodSeconds()
	return obj.GetDeletionTimestamp() != nil && has != nil && *has > 0 && (d.requestedGrace == nil || *d.requestedGrace >= *has)
}

func (d *deletion[T]) runAdmission(ctx context.Context, old T) error {
	if d.admit.Mutate != nil {
		if err := d.admit.Mutate(ctx, nil, old); err != nil {
			return err
		}
	}
	if d.admit.Validate != nil {
		return d.admit.Validate(ctx, nil, old)
	}
	return nil
}

// decision is what happens to an object whose deletion is requested:
//
//	not marked → remove   nothing keeps it
//	not marked → mark     a grace period, finalizers or a hold keep it
//	marked     → mark     the grace period is shortened
//	marked     → remove   it is shortened to nothing, and nothing else keeps it
//	marked     → keep     the grace period asked for is not shorter
type decision int

const (
	keep decision = iota
	mark
	remove
)

// decideAndMark marks obj if it has to be marked.
func (d *deletion[T]) decideAndMark(obj T) decision {
	grace, graceful := int64(0), false
	if d.store.strategy.Delete.GracePeriod != nil {
		grace, graceful = d.store.strategy.Delete.GracePeriod(obj, d.requestedGrace)
	}
	if d.store.strategy.Delete.Begin != nil {
		d.store.strategy.Delete.Begin(obj)
	}
	kept := graceful || len(obj.GetFinalizers()) > 0 || d.store.isHeld(obj)
	if !kept {
		return remove
	}
	since := obj.GetDeletionTimestamp()
	if since == nil {
		d.mark(obj, d.store.clock.Now().Add(core.Seconds(grace)), grace)
		if obj.GetGeneration() > 0 && !d.store.strategy.Delete.NoGracePeriod {
			obj.SetGeneration(obj.GetGeneration() + 1)
		}
		return mark
	}
	had := obj.GetDeletionGracePeriodSeconds()
	if had == nil && d.store.strategy.Delete.GracePeriodOnSecondDelete {
		obj.SetDeletionGracePeriodSeconds(&grace)
		return mark
	}
	if had == nil || d.requestedGrace == nil || grace >= *had {
		return keep
	}
	d.mark(obj, since.Add(core.Seconds(grace)-core.Seconds(*had)), grace)
	return mark
}

func (d *deletion[T]) mark(obj T, at time.Time, grace int64) {
	when := metav1.Time{Time: at}.Rfc3339Copy()
	obj.SetDeletionTimestamp(&when)
	if !d.store.strategy.Delete.NoGracePeriod {
		obj.SetDeletionGracePeriodSeconds(&grace)
	}
}

// setFinalizers adds the finalizer that the propagation policy asks for and
// removes the other. Without a policy the object keeps its own.
func (d *deletion[T]) setFinalizers(obj T) (changed bool) {
	if d.store.strategy.Delete.HasNoDependents {
		return false
	}
	want := ""
	//nolint:staticcheck // older clients send orphanDependents
	switch policy, orphan := d.options.PropagationPolicy, d.options.OrphanDependents; {
	case policy != nil && *policy == metav1.DeletePropagationOrphan, policy == nil && orphan != nil && *orphan:
		want = metav1.FinalizerOrphanDependents
	case policy != nil && *policy == metav1.DeletePropagationForeground:
		want = metav1.FinalizerDeleteDependents
	case policy == nil && orphan == nil && d.store.strategy.Delete.OrphansByDefault &&
		!slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents):
		want = metav1.FinalizerOrphanDependents
	case policy == nil && orphan == nil:
		return false
	}
	before := obj.GetFinalizers()
	after := slices.DeleteFunc(slices.Clone(before), func(f string) bool {
		return f != want && (f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents)
	})
	if want != "" && !slices.Contains(after, want) {
		after = append(after, want)
	}
	obj.SetFinalizers(after)
	return !slices.Equal(before, after)
}

func (d *deletion[T]) remove(ctx context.Context, obj T) (Encoded, bool, error) {
	if d.forcesTermination(obj) && !d.dry {
		d.markAsDeleting(obj)
		if _, _, err := d.write(ctx, obj); err != nil {
			return Encoded{}, false, err
		}
		d.terminationForced = true
	}
	value, err := d.finalState(obj)
	if err != nil {
		return Encoded{}, false, err
	}
	revision := d.base.Revision
	if !d.dry {
		switch gone, err := d.store.storage.Delete(ctx, d.key, d.base.Revision); {
		case err == nil:
			revision = gone.Revision
		case d.terminationForced && errors.Is(err, storage.ErrNotFound): // the one that was told was faster
		default:
			d.takeConflicting(gone, err)
			return Encoded{}, false, err
		}
	}
	e, err := withRevision(value, revision)
	return e, true, err
}

// forcesTermination reports whether something else (a kubelet) has yet to
// terminate what obj stands for, and has not been told that no time is left.
func (d *deletion[T]) forcesTermination(obj T) bool {
	had := obj.GetDeletionGracePeriodSeconds()
	told := had != nil && *had == 0
	return !told && d.store.strategy.Delete.TerminatedElsewhere != nil && d.store.strategy.Delete.TerminatedElsewhere(obj)
}

// finalState is the final state of the object, as the answer shows it: if a grace
// period could have kept it, with the mark that none does.
func (d *deletion[T]) finalState(obj T) ([]byte, error) {
	if !d.store.strategy.Delete.ReturnDeletedObject || d.store.strategy.Delete.GracePeriod == nil {
		return d.base.Value, nil
	}
	d.markAsDeleting(obj)
	return d.store.encode(obj)
}

// markAsDeleting marks obj as being deleted, with no grace period.
func (d *deletion[T]) markAsDeleting(obj T) {
	at := d.store.clock.Now()
	switch since, had := obj.GetDeletionTimestamp(), obj.GetDeletionGracePeriodSeconds(); {
	case since == nil && obj.GetGeneration() > 0:
		obj.SetGeneration(obj.GetGeneration() + 1)
	case since != nil && had != nil:
		at = since.Add(-core.Seconds(*had))
	}
	d.mark(obj, at, 0)
}

func (d *deletion[T]) write(ctx context.Context, obj T) (Encoded, bool, error) {
	value, err := d.store.encode(obj)
	if err != nil {
		return Encoded{}, false, err
	}
	if d.dry {
		e, err := withRevision(value, d.base.Revision)
		return e, false, err
	}
	stored, err := d.store.storage.Update(ctx, d.key, d.base.Revision, value, d.store.ttl(obj))
	if err != nil {
		d.takeConflicting(stored, err)
		return Encoded{}, false, err
	}
	d.base = stored
	return encoded(stored), false, nil
}
