package registry

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/scheme"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/raw"
	"kctl/proto/core"
)

// updateAttempts bounds how often one update starts over because another was faster.
// The last of many clients that patch one object at once has lost to all others.
const updateAttempts = 1024

// errStale: the state that the update was based on is no longer the stored one.
var errStale = errors.New("based on an old state")

// update is one call of Update.
type update[T core.Object] struct {
	basis[T] // that the change is made to
	name     string
	// subresource that the change goes through; strategy guards it.
	subresource string
	strategy    UpdateStrategy[T]
	change      Transform
	admit       Admission
	dry         bool
	kept        bool // change has returned the object that it was given
}

// Update implements Resource.
func (s *Store[T]) Update(ctx context.Context, target Target, change Transform, admit Admission,
	o *metav1.UpdateOptions) (Encoded, bool, error) {
	way, ok := s.updateStrategy(target.Subresource)
	if !ok {
		return Encoded{}, false, apierrors.NewNotFound(s.groupResource(), target.Name+"/"+target.Subresource)
	}
	u := &update[T]{
		basis: basis[T]{store: s, key: s.key(target.Namespace, target.Name)}, name: target.Name,
		subresource: target.Subresource, strategy: way, change: change, admit: admit, dry: dryRun(o.DryRun),
	}
	if err := u.read(ctx); err != nil {
		if errors.Is(err, storage.ErrNotFound) && (s.strategy.Update.AllowCreate || admit.CreatesIfMissing) && target.Subresource == "" {
			made, err := s.createByUpdate(ctx, change, admit, o)
			return made, err == nil, err
		}
		return Encoded{}, false, s.statusOf(err, "update", target.Name)
	}
	result, err := u.run(ctx)
	return result, false, s.statusOf(err, "update", target.Name)
}

// updateStrategy is the UpdateStrategy that guards a subresource.
func (s *Store[T]) updateStrategy(subresource string) (UpdateStrategy[T], bool) {
	switch subresource {
	case "":
		return s.strategy.Update, true
	case "status":
		if s.strategy.Status == nil {
			return UpdateStrategy[T]{}, false
		}
		return *s.strategy.Status, true
	}
	way, ok := s.strategy.Subresources[subresource]
	return way, ok
}

func (s *Store[T]) createByUpdate(ctx context.Context, change Transform, admit Admission, o *metav1.UpdateOptions) (Encoded, error) {
	obj, err := change(nil)
	if err != nil {
		return Encoded{}, s.statusOf(err, "update", "")
	}
	if uid := obj.GetUID(); uid != "" {
		return Encoded{}, s.wrongUID(s.key(obj.GetNamespace(), obj.GetName()), obj.GetName(), uid, "")
	}
	if version := obj.GetResourceVersion(); version != "" && version != "0" {
		// An object that was deleted meanwhile is created again, as upstream does,
		// whichever version of it the client has seen.
		if err := checkIsVersion(version); err != nil {
			return Encoded{}, err
		}
	}
	obj.SetResourceVersion("")
	return s.Create(ctx, obj, admit, &metav1.CreateOptions{DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation})
}

// run tries until the change is stored or refused. A refusal that was based on
// the cache may be the cache's fault, so it counts only once the state has been
// read from etcd.
func (u *update[T]) run(ctx context.Context) (Encoded, error) {
	for range updateAttempts {
		result, err := u.try(ctx)
		switch {
		case err == nil:
			return result, nil
		case errors.Is(err, storage.ErrConflict):
			// try has already loaded the present state.
			continue
		case u.fresh, errors.Is(err, storage.ErrUnavailable): // whether a write without an answer happened is unknown
			return Encoded{}, err
		}
		changed, readErr := u.reread(ctx)
		if readErr != nil {
			return Encoded{}, readErr
		}
		if !changed {
			return Encoded{}, err
		}
	}
	return Encoded{}, u.store.conflict(u.name)
}

// try makes the change to the base and stores it.
func (u *update[T]) try(ctx context.Context) (Encoded, error) {
	old, err := u.store.decode(u.base.Value)
	if err != nil {
		return Encoded{}, err
	}
	obj, err := u.prepare(ctx, old)
	if err != nil {
		return Encoded{}, err
	}
	e, err := u.put(ctx, obj, old)
	if u.admit.mayDropManagedFields(err, obj) {
		obj.SetManagedFields(nil)
		return u.put(ctx, obj, old)
	}
	return e, err
}

// put stores the changed object.
func (u *update[T]) put(ctx context.Context, obj, old T) (Encoded, error) {
	value, err := u.encode(obj, old)
	if err != nil {
		return Encoded{}, err
	}
	if u.store.isRemovable(obj) && old.GetDeletionTimestamp() != nil {
		return u.remove(ctx, value)
	}
	same, err := u.unchanged(ctx, value)
	if same && err == nil {
		u.note(ctx, old)
	}
	if same || err != nil {
		return encoded(u.base), err
	}
	if u.dry {
		return withRevision(value, u.base.Revision)
	}
	u.store.expect(u.key, value, obj, u.admit)
	stored, err := u.store.storage.Update(ctx, u.key, u.base.Revision, value, u.store.ttl(obj))
	if err != nil {
		u.store.cache.Unexpect(u.key)
		u.takeConflicting(stored, err)
		return Encoded{}, err
	}
	u.note(ctx, obj)
	return encoded(stored), nil
}

// note tells the request which object it has written, or has found as it wants it.
func (u *update[T]) note(ctx context.Context, obj T) {
	if !u.dry {
		request.NoteWritten(ctx, u.store.strategy.Resource, obj, false, u.store.clock.Now())
	}
}

// encode returns obj as it shall be stored. Repeating an earlier write is no
// change, so if only times in managedFields differ, the old ones stay.
func (u *update[T]) encode(obj, old T) ([]byte, error) {
	entries := obj.GetManagedFields()
	if managedfields.KeepTimes(obj, old) {
		value, err := u.store.encode(obj)
		if err != nil {
			return nil, err
		}
		if same, err := raw.SameButVersion(u.base.Value, value); err != nil || same {
			return value, err
		}
		obj.SetManagedFields(entries)
	}
	return u.store.encode(obj)
}

// prepare returns the changed object, admitted and valid.
func (u *update[T]) prepare(ctx context.Context, old T) (T, error) {
	obj, err := u.transform(old)
	if err != nil {
		return obj, err
	}
	if err := u.mutate(ctx, obj, old); err != nil {
		return obj, err
	}
	u.applyStrategy(ctx, obj, old)
	return obj, u.validate(ctx, obj, old)
}

// transform returns what the caller makes of the object, with its defaults.
func (u *update[T]) transform(old T) (T, error) {
	var obj T
	given := old.DeepCopyObject().(core.Object)
	changed, err := u.change(given)
	if err != nil {
		return obj, err
	}
	u.kept = changed == given
	obj, ok := changed.(T)
	if !ok {
		return obj, fmt.Errorf("update of %s with a %T", u.store.strategy.Resource.Name, changed)
	}
	if err := u.checkPreconditions(obj, old); err != nil {
		return obj, err
	}
	u.fillDefaults(obj, old)
	return obj, nil
}

// fillDefaults fills in defaults, unless the change has returned the very object that it was given,
// and as it was: in a version that has defaults for fields which the stored one lacks, doing
// nothing would be a change.
func (u *update[T]) fillDefaults(obj, old T) {
	if u.kept && u.store.strategy.Encoding != nil && managedfields.AllElseEqual(obj, old) {
		return
	}
	u.store.Default(obj)
}

// mutate records who owns the changed fields, and runs mutating admission.
func (u *update[T]) mutate(ctx context.Context, obj, old T) error {
	switch {
	case u.admit.TrackFields != nil:
		u.admit.TrackFields(obj, old, u.oldJSON(old))
	case u.admit.FieldManager != "":
		obj.SetManagedFields(old.GetManagedFields())
		u.store.tracker.Update(obj, old, u.oldJSON(old), managedfields.Manager{Name: u.admit.FieldManager, Subresource: u.subresource})
	default:
		obj.SetManagedFields(old.GetManagedFields())
	}
	if u.admit.Mutate == nil {
		return nil
	}
	if err := u.admit.Mutate(ctx, obj, old); err != nil {
		return err
	}
	// A version set by admission counts like one set by the client.
	if err := u.checkVersion(obj, old); err != nil {
		return err
	}
	u.fillDefaults(obj, old)
	return nil
}

// applyStrategy restores what this update may not change.
func (u *update[T]) applyStrategy(ctx context.Context, obj, old T) {
	DropDuplicateOwners(ctx, obj, afterMutation)
	obj.SetResourceVersion(old.GetResourceVersion())
	u.store.keepSystemMetadata(obj, old)
	if u.strategy.Prepare != nil {
		u.strategy.Prepare(ctx, obj, old)
	}
	if u.strategy.KeepsMetadata {
		metav1.ResetObjectMetaForStatus(obj, old)
	}
	if !u.strategy.KeepsGeneration {
		u.store.updateGeneration(obj, old)
	}
}

// validate validates the object, warns about it, and runs validating admission.
func (u *update[T]) validate(ctx context.Context, obj, old T) error {
	errs := u.store.validateChange(ctx, u.strategy, obj, old)
	if ctx.Err() != nil { // which may be why errs are what they are
		return fmt.Errorf("validating the object: %w", ctx.Err())
	}
	if len(errs) > 0 {
		return Invalid(u.store.kindOf(obj), u.name, u.store.distinct(errs))
	}
	if u.strategy.Warnings != nil {
		warn(ctx, u.strategy.Warnings(ctx, obj, old))
	}
	if u.admit.Validate != nil {
		return u.admit.Validate(ctx, obj, old)
	}
	return nil
}

// oldJSON is old in JSON: the stored bytes, if objects are stored as they are.
func (u *update[T]) oldJSON(old T) []byte {
	if u.store.strategy.Encoding == nil {
		return u.base.Value
	}
	text, err := scheme.Encode(old)
	if err != nil { // it came from JSON
		return nil
	}
	return text
}

// checkPreconditions checks the UID and the version that the client wrote into the
// object. Mutating admission sees that version.
func (u *update[T]) checkPreconditions(obj, old T) error {
	if uid := obj.GetUID(); uid != "" && uid != old.GetUID() {
		return u.store.wrongUID(u.key, u.name, uid, old.GetUID())
	}
	return u.checkVersion(obj, old)
}

func (u *update[T]) checkVersion(obj, old T) error {
	switch version := obj.GetResourceVersion(); {
	case version == old.GetResourceVersion():
		return nil
	case version != "" && version != "0":
		if err := checkIsVersion(version); err != nil {
			return err
		}
		return errStale
	case u.store.strategy.Update.AllowUnconditional:
		return nil
	}
	resource := u.store.groupResource()
	return Invalid(schema.GroupKind{Group: resource.Group, Kind: resource.Resource}, u.name, field.ErrorList{
		field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
	})
}

// unchanged reports whether value equals what is stored; if that came from the
// cache, it asks etcd to make sure.
func (u *update[T]) unchanged(ctx context.Context, value []byte) (bool, error) {
	if same, err := raw.SameButVersion(u.base.Value, value); err != nil || !same {
		return false, err
	}
	if u.fresh {
		return !u.base.Stale, nil
	}
	changed, err := u.reread(ctx)
	if err != nil {
		return false, err
	}
	if changed {
		return false, storage.ErrConflict
	}
	return !u.base.Stale, nil
}

// remove deletes an object for which only this change was awaited.
func (u *update[T]) remove(ctx context.Context, value []byte) (Encoded, error) {
	if u.dry {
		return withRevision(value, u.base.Revision)
	}
	gone, err := u.store.storage.Delete(ctx, u.key, u.base.Revision)
	if err != nil {
		u.takeConflicting(gone, err)
		return Encoded{}, err
	}
	return withRevision(value, gone.Revision)
}

func withRevision(value []byte, revision int64) (Encoded, error) {
	value, err := raw.SetResourceVersion(value, revision)
	return Encoded{JSON: value, Revision: revision}, err
}
