package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
	"kctl/proto/core"
)

// generateAttempts is how many names are tried for one generateName.
const generateAttempts = 8

// Create implements Resource.
func (s *Store[T]) Create(ctx context.Context, obj core.Object, admit Admission, o *metav1.CreateOptions) (Encoded, error) {
	typed, ok := obj.(T)
	if !ok {
		return Encoded{}, apierrors.NewInternalError(fmt.Errorf("create of %s with a %T", s.strategy.Resource.Name, obj))
	}
	if err := s.admitNew(ctx, typed, admit); err != nil {
		return Encoded{}, err
	}
	generated := obj.GetName() == "" && obj.GetGenerateName() != ""
	if generated { // before it is prepared: jobs have their name in labels
		obj.SetName(generateName(obj.GetGenerateName()))
	}
	if s.strategy.Create.Prepare != nil {
		s.strategy.Create.Prepare(ctx, typed)
	}
	for attempt := 1; ; attempt++ {
		made, err := s.createOnce(ctx, typed, admit, dryRun(o.DryRun))
		if err == nil || !errors.Is(err, storage.ErrExists) {
			return made, s.statusOf(err, "create", obj.GetName())
		}
		if !generated {
			return Encoded{}, s.alreadyExists(obj)
		}
		if attempt == generateAttempts {
			return Encoded{}, apierrors.NewGenerateNameConflict(s.groupResource(), obj.GetName(), 1)
		}
		taken := obj.GetName()
		obj.SetName(generateName(obj.GetGenerateName()))
		if s.strategy.Create.NameRegenerated != nil {
			s.strategy.Create.NameRegenerated(typed, taken)
		}
	}
}

// admitNew brings a new object into the form that is validated.
func (s *Store[T]) admitNew(ctx context.Context, obj T, admit Admission) error {
	DropDuplicateOwners(ctx, obj, "")
	clearStoredMetadata(obj)
	s.Default(obj)
	if admit.TrackFields != nil {
		admit.TrackFields(obj, nil, nil)
	} else {
		obj.SetManagedFields(nil)
		s.tracker.Update(obj, nil, nil, managedfields.Manager{Name: cmp.Or(admit.FieldManager, ServerManager)})
	}
	if admit.Mutate != nil {
		if err := admit.Mutate(ctx, obj, nil); err != nil {
			return s.statusOf(err, "create", obj.GetName())
		}
		DropDuplicateOwners(ctx, obj, afterMutation)
		s.Default(obj)
	}
	s.fillSystemMetadata(obj)
	return nil
}

// createOnce validates obj under its present name and stores it.
func (s *Store[T]) createOnce(ctx context.Context, obj T, admit Admission, dry bool) (Encoded, error) {
	errs := s.validateNew(ctx, obj)
	if ctx.Err() != nil { // which may be why errs are what they are
		return Encoded{}, fmt.Errorf("validating the object: %w", ctx.Err())
	}
	if len(errs) > 0 {
		return Encoded{}, Invalid(s.kindOf(obj), obj.GetName(), s.distinct(errs))
	}
	if s.strategy.Create.Warnings != nil {
		warn(ctx, s.strategy.Create.Warnings(ctx, obj))
	}
	if admit.Validate != nil {
		if err := admit.Validate(ctx, obj, nil); err != nil {
			return Encoded{}, err
		}
	}
	// As in upstream's storage this check comes last, so a client that may not create the
	// object is told that instead. An empty resourceVersion is fine.
	if revision, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64); err == nil && revision > 0 && !dry {
		return Encoded{}, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	e, err := s.storeNew(ctx, obj, admit, dry)
	if admit.mayDropManagedFields(err, obj) {
		obj.SetManagedFields(nil)
		return s.storeNew(ctx, obj, admit, dry)
	}
	return e, err
}

// mayDropManagedFields reports whether an object that was too large to be stored may be tried
// again without its managedFields, as upstream does.
func (a Admission) mayDropManagedFields(err error, obj core.Object) bool {
	return a.MayDropManagedFields && errors.Is(err, storage.ErrTooLarge) && len(obj.GetManagedFields()) > 0
}

func (s *Store[T]) storeNew(ctx context.Context, obj T, admit Admission, dry bool) (Encoded, error) {
	asked := obj.GetResourceVersion()
	value, err := s.encode(obj)
	if err != nil {
		return Encoded{}, err
	}
	key := s.key(obj.GetNamespace(), obj.GetName())
	if dry {
		if _, err := s.storage.Get(ctx, key); !errors.Is(err, storage.ErrNotFound) {
			if err == nil {
				err = storage.ErrExists
			}
			return Encoded{}, err
		}
		if revision, err := strconv.ParseInt(asked, 10, 64); err == nil && revision > 0 {
			return withRevision(value, revision) // upstream answers with what it was sent
		}
		return Encoded{JSON: value}, nil
	}
	s.expect(key, value, obj, admit)
	stored, err := s.storage.Create(ctx, key, value, s.ttl(obj))
	if err != nil {
		s.cache.Unexpect(key)
		return Encoded{}, err
	}
	request.NoteWritten(ctx, s.strategy.Resource, obj, true, s.clock.Now())
	return Encoded{JSON: stored.Value, Revision: stored.Revision, Object: obj}, nil
}

// expect hands the cache what is about to be written, so that it need not
// decode it again. Objects whose stored form differs from their own are left
// out.
func (s *Store[T]) expect(key string, value []byte, obj T, admit Admission) {
	if s.strategy.Encoding != nil {
		return
	}
	hint := cache.Hint{Labels: obj.GetLabels()}
	if s.strategy.Read.Fields != nil {
		hint.Fields = s.strategy.Read.Fields(obj)
	}
	if admit.ReleasesObject {
		hint.Object = obj
	}
	s.cache.Expect(key, value, hint)
}

// alreadyExists is the error for a name that is taken; it says if the existing object is
// being deleted.
func (s *Store[T]) alreadyExists(obj core.Object) error {
	err := apierrors.NewAlreadyExists(s.groupResource(), obj.GetName())
	if obj.GetGenerateName() != "" { // though it has a name: upstream looks no further
		err = apierrors.NewGenerateNameConflict(s.groupResource(), obj.GetName(), 1)
	}
	if existing, ok := s.cached(obj.GetNamespace(), obj.GetName()); ok && existing.GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

func dryRun(values []string) bool { return len(values) > 0 }
