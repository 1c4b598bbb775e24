package registry

import (
	"context"
	"reflect"
	"slices"

	"github.com/google/uuid"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

var metadataPath = field.NewPath("metadata")

// The suffix that generateName asks for, and how much of a name it leaves.
const (
	suffixLength  = 5
	maxNameLength = 63
)

func generateName(base string) string {
	if max := maxNameLength - suffixLength; len(base) > max {
		base = base[:max]
	}
	return base + rand.String(suffixLength)
}

// fillSystemMetadata sets the metadata of a new object that the server owns, and drops
// what the client may not set.
func (s *Store[T]) fillSystemMetadata(obj T) {
	if !s.strategy.Resource.Namespaced {
		obj.SetNamespace("")
	}
	clearStoredMetadata(obj)
	obj.SetUID(types.UID(uuid.NewString()))
	obj.SetCreationTimestamp(metav1.Time{Time: s.clock.Now()}.Rfc3339Copy())
	if s.strategy.HasGeneration {
		obj.SetGeneration(1)
	}
}

// clearStoredMetadata drops the metadata that only a stored object has. Admission does not
// see what a client wrote there, and no field manager owns it.
func clearStoredMetadata(obj core.Object) {
	obj.SetUID("")
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
}

func (s *Store[T]) validateNew(ctx context.Context, obj T) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessor(obj, s.strategy.Resource.Namespaced, s.validateName, metadataPath)
	errs = append(errs, validateFinalizerNames(s.strategy.Resource, obj.GetFinalizers())...)
	if s.strategy.Create.Validate != nil {
		errs = append(errs, s.strategy.Create.Validate(ctx, obj)...)
	}
	var none T
	return s.validateLast(ctx, obj, none, errs)
}

func (s *Store[T]) validateLast(ctx context.Context, obj, old T, errs field.ErrorList) field.ErrorList {
	if s.strategy.ValidateLast != nil {
		errs = append(errs, s.strategy.ValidateLast(ctx, obj, old, errs)...)
	}
	return errs
}

func (s *Store[T]) validateName(name string, prefix bool) []string {
	if s.strategy.Create.ValidateName == nil {
		return validation.NameIsDNSSubdomain(name, prefix)
	}
	return s.strategy.Create.ValidateName(name, prefix)
}

// keepSystemMetadata restores metadata in obj that only the server writes, if the client
// left it out or changed it where that is no error.
func (s *Store[T]) keepSystemMetadata(obj, old T) {
	if !s.strategy.Resource.Namespaced {
		obj.SetNamespace("")
	}
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	if obj.GetDeletionTimestamp() == nil || old.GetDeletionTimestamp() != nil { // updates do not decide when it goes
		obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
	obj.SetGeneration(old.GetGeneration())
	obj.SetSelfLink("")
}

// updateGeneration raises the generation if more than metadata and status
// changed.
func (s *Store[T]) updateGeneration(obj, old T) {
	if !s.strategy.HasGeneration {
		return
	}
	state := s.strategy.DesiredState
	if state == nil {
		state = func(obj T) any { return desired(obj) }
	}
	if !apiequality.Semantic.DeepEqual(state(obj), state(old)) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}

// desired returns the fields of an object apart from its kind, metadata and
// status.
func desired(obj core.Object) []any {
	value := reflect.ValueOf(obj).Elem()
	var out []any
	for i := range value.NumField() {
		switch value.Type().Field(i).Name {
		case "TypeMeta", "ObjectMeta", "Status":
		default:
			out = append(out, value.Field(i).Interface())
		}
	}
	return out
}

// validateGenerateName checks a changed one as that of a new object.
func (s *Store[T]) validateGenerateName(base string) (errs field.ErrorList) {
	problems := content.IsPathSegmentPrefix(base)
	if base != "" {
		problems = append(problems, s.validateName(base, true)...)
	}
	for _, problem := range problems {
		errs = append(errs, field.Invalid(metadataPath.Child("generateName"), base, problem))
	}
	return errs
}

func (s *Store[T]) validateChange(ctx context.Context, way UpdateStrategy[T], obj, old T) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessorUpdate(obj, old, metadataPath)
	if base := obj.GetGenerateName(); base != old.GetGenerateName() {
		errs = append(errs, s.validateGenerateName(base)...)
	}
	if finalizers := obj.GetFinalizers(); len(finalizers) > 0 && !slices.Equal(finalizers, old.GetFinalizers()) {
		errs = append(errs, validation.ValidateFinalizers(finalizers, metadataPath.Child("finalizers"))...)
		errs = append(errs, validateFinalizerNames(s.strategy.Resource, finalizers)...)
	}
	if way.Validate != nil {
		errs = append(errs, s.newErrors(ctx, way, obj, old, way.Validate(ctx, obj, old))...)
	}
	return s.validateLast(ctx, obj, old, errs)
}

// isRemovable reports whether nothing keeps an object any longer whose deletion
// was requested.
func (s *Store[T]) isRemovable(obj T) bool {
	return obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 &&
		ptr.Deref(obj.GetDeletionGracePeriodSeconds(), 0) == 0 && !s.isHeld(obj)
}

func (s *Store[T]) isHeld(obj T) bool {
	return s.strategy.Delete.Held != nil && s.strategy.Delete.Held(obj)
}

func warn(ctx context.Context, texts []string) {
	for _, text := range texts {
		request.Warn(ctx, text)
	}
}
