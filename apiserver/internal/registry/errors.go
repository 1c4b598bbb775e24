package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/status"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
	"kctl/proto/core"
)

// errModified is upstream's text, which clients look for.
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// statusOf turns an error into the form that goes over the wire. Status errors
// stay as they are.
func (s *Store[T]) statusOf(err error, verb, name string) error {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	var future *cache.FutureError
	switch {
	case errors.As(err, &status):
		return err
	case errors.Is(err, storage.ErrNotFound):
		return apierrors.NewNotFound(s.groupResource(), name)
	case errors.Is(err, storage.ErrExists):
		return apierrors.NewAlreadyExists(s.groupResource(), name)
	case errors.Is(err, storage.ErrConflict), errors.Is(err, errStale):
		return s.conflict(name)
	case errors.As(err, &future):
		return resourceVersionTooLarge(future.Wanted, future.Current)
	case errors.Is(err, storage.ErrFuture):
		return resourceVersionTooLarge(0, s.cache.Revision())
	case errors.Is(err, storage.ErrCompacted):
		return apierrors.NewResourceExpired(err.Error())
	case errors.Is(err, cache.ErrHeldBack):
		return apierrors.NewTooManyRequests(fmt.Sprintf("storage is (re)initializing: %s: %v", s.strategy.Resource.Name, err), 1)
	case errors.Is(err, storage.ErrUnreadable) && verb == "list":
		return s.listHasUnreadable(err)
	case errors.Is(err, cache.ErrEnded):
		return apierrors.NewTooManyRequests("storage is (re)initializing: "+s.strategy.Resource.Name+
			" are being read again, if they are still served", 1)
	case errors.Is(err, cache.ErrNotReady):
		return apierrors.NewTooManyRequests("storage is (re)initializing: "+s.strategy.Resource.Name+" are not read from etcd yet", 1)
	case errors.Is(err, context.Canceled):
		return apierrors.NewTimeoutError("the request was given up before it was complete", 0)
	case errors.Is(err, storage.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return noAnswer(verb, errors.Is(err, context.DeadlineExceeded))
	case errors.Is(err, storage.ErrTooLarge):
		return s.tooLarge(err, name)
	}
	return apierrors.NewInternalError(err)
}

// tooLarge names the object, its size as far as it is known, and the setting that limits it.
func (s *Store[T]) tooLarge(err error, name string) error {
	if at, ok := errors.AsType[*storage.KeyError](err); ok {
		err = at.Err
	}
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("%s %q: %v (a limit of etcd's, --max-request-bytes)",
		s.groupResource(), name, err))
}

// maxCauses is more than anyone reads. A body of a few megabytes can have a
// million faults, and listing all of them takes gigabytes, and time that grows
// with the square of their number.
const maxCauses = 1000

// maxText is how many bytes they may have together, but for the first. A fault may
// quote the whole list that it is in.
const maxText = 4 << 20

// reportedErrors returns how many of the errors are reported.
func reportedErrors(errs field.ErrorList) int {
	size := 0
	for i, err := range errs[:min(len(errs), maxCauses)] {
		if size += len(err.Error()); size > maxText && i > 0 {
			return i
		}
	}
	return min(len(errs), maxCauses)
}

// Invalid returns the 422 that lists what is wrong with an object, as much of it as is
// reportedErrors says.
func Invalid(kind schema.GroupKind, name string, errs field.ErrorList) *apierrors.StatusError {
	n := reportedErrors(errs)
	err := apierrors.NewInvalid(kind, name, errs[:n])
	if more := len(errs) - n; more > 0 {
		err.ErrStatus.Message += fmt.Sprintf(" and %d more", more)
	}
	return err
}

// distinct leaves out repeated errors: two labels with the same wrong value are
// reported once, except in custom resources, as upstream does.
func (s *Store[T]) distinct(errs field.ErrorList) field.ErrorList {
	if s.strategy.Encoding != nil || reportedErrors(errs) < len(errs) {
		return errs
	}
	said := sets.New[string]()
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		text := err.Error()
		again := said.Has(text)
		said.Insert(text)
		return again
	})
}

// noAnswer is the error for a call that etcd did not answer. A read can
// simply be tried again, and clients do that by themselves if they are told to, ten times;
// one that has waited in vain until its time was up is left to its user, who would wait for
// many minutes. Whether a write happened is unknown.
func noAnswer(verb string, waited bool) error {
	switch verb {
	case "get", "list", "watch":
		if waited {
			return apierrors.NewTimeoutError("etcd did not answer in time", 0)
		}
		err := apierrors.NewServiceUnavailable("etcd does not answer")
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
		return err
	}
	return apierrors.NewTimeoutError(fmt.Sprintf("etcd did not answer in time: the %s may or may not have happened", verb), 0)
}

func (s *Store[T]) conflict(name string) error {
	return apierrors.NewConflict(s.groupResource(), name, errModified)
}

// wrongUID is upstream's answer to a request that means another object of the
// same name, or one that is gone.
func (s *Store[T]) wrongUID(key, name string, wanted, present types.UID) error {
	return apierrors.NewConflict(s.groupResource(), name,
		fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "+
			"precondition: %v, UID in object meta: %v", key, wanted, present))
}

// CheckVersion refuses an object that was made from another version than the present one, where
// it says from which.
func CheckVersion(resource schema.GroupResource, obj, present core.Object) error {
	version := obj.GetResourceVersion()
	if version == "" || version == "0" || version == present.GetResourceVersion() {
		return nil
	}
	if err := checkIsVersion(version); err != nil {
		return err
	}
	return apierrors.NewConflict(resource, present.GetName(), errModified)
}

// checkIsVersion is upstream's answer to an object with a resourceVersion that is none.
func checkIsVersion(version string) error {
	_, err := strconv.ParseUint(version, 10, 64)
	if err == nil {
		return nil
	}
	return status.WithoutReason(err.Error())
}

// resourceVersionTooLarge is upstream's answer to a resourceVersion from the future; clients
// recognise it by its cause.
func resourceVersionTooLarge(wanted, current int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", wanted, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}
