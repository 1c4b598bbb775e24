package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/storage"
)

// deleteUnreadable deletes an object that can't be read, and no other (KEP-3926). As its
// content is unknown, admission can't be asked and no finalizer keeps it.
func (s *Store[T]) deleteUnreadable(ctx context.Context, key, name string, dry bool) error {
	for range updateAttempts {
		object, err := s.storage.Get(ctx, key)
		if err == nil {
			_, err = s.decode(object.Value)
		}
		switch {
		case err == nil:
			return apierrors.NewConflict(s.groupResource(), name, fmt.Errorf(
				"StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is not allowed because the "+
					"object is decodable from storage", key))
		case object.Revision == 0:
			return err
		case dry:
			return nil
		}
		_, err = s.storage.Delete(ctx, key, object.Revision)
		if !errors.Is(err, storage.ErrConflict) && !errors.Is(err, storage.ErrUnreadable) {
			return err
		}
	}
	return s.conflict(name)
}

// listHasUnreadable is upstream's answer to a list with objects that can't be read.
func (s *Store[T]) listHasUnreadable(err error) error {
	objects, more := []error{err}, false
	if several := (*storage.UnreadableError)(nil); errors.As(err, &several) {
		objects, more = several.Objects, several.More
	}
	var causes []metav1.StatusCause
	for _, err := range objects {
		cause := metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Message: err.Error()}
		if of := (*storage.KeyError)(nil); errors.As(err, &of) {
			cause.Field = of.Key
		}
		causes = append(causes, cause)
	}
	if more {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeTooMany, Message: "too many errors, the list is truncated"})
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonStoreReadError,
		Message: fmt.Sprintf("failed to read one or more %s from the storage: %v", s.groupResource(), err),
		Details: &metav1.StatusDetails{
			Name: "list", Group: s.strategy.Resource.Group, Kind: s.strategy.Resource.Name, Causes: causes,
		},
	}}
}
