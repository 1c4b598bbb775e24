package handlers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

// schemeName is what upstream's server calls its scheme in messages.
const schemeName = "pkg/runtime/scheme.go:111"

// checkKind refuses objects of another kind than the URL's. An object may omit
// its kind or its version.
func checkKind(obj runtime.Object, want schema.GroupVersionKind, also ...schema.GroupVersionKind) error {
	got, err := statedKind(obj, want)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v", want.Kind, err))
	}
	switch {
	case got == want, slices.Contains(also, got):
		obj.GetObjectKind().SetGroupVersionKind(want)
		return nil
	case scheme.Scheme.Recognizes(got) && got.GroupKind() != want.GroupKind():
		return wrongKind(got, want, fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion",
			got.Version, got.Kind, packageOf(want.Group), want.Kind))
	case got.Kind == want.Kind && got.Group == want.Group && got.Group != "":
		return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
			got.GroupVersion(), want.GroupVersion()))
	}
	return wrongKind(got, want, runtime.NewNotRegisteredErrForKind(schemeName, got))
}

// checkKindKept refuses a patch that changes an object's kind. A patch may remove
// the kind or the version.
func checkKindKept(obj runtime.Object, want schema.GroupVersionKind) error {
	got, err := statedKind(obj, want)
	if err != nil {
		return err
	}
	switch {
	case got == want:
		return nil
	case scheme.Scheme.Recognizes(got):
		return fmt.Errorf("the patch makes it a %s of %s", got.Kind, got.GroupVersion())
	}
	return runtime.NewNotRegisteredErrForKind(schemeName, got)
}

// statedKind is the kind that an object states; what it leaves out is as in otherwise.
func statedKind(obj runtime.Object, otherwise schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	stated := obj.GetObjectKind()
	if text, ok := stated.(*metav1.TypeMeta); ok {
		if _, err := schema.ParseGroupVersion(text.APIVersion); err != nil {
			return schema.GroupVersionKind{}, err
		}
	}
	kind := stated.GroupVersionKind()
	if kind.GroupVersion().Empty() {
		kind.Group, kind.Version = otherwise.Group, otherwise.Version
	}
	kind.Kind = cmp.Or(kind.Kind, otherwise.Kind)
	return kind, nil
}

// checkUnstructuredKindKept is checkKindKept for objects without a Go type, for which upstream
// reports it field by field.
func checkUnstructuredKindKept(obj core.Object, want schema.GroupVersionKind) error {
	var errs field.ErrorList
	got := obj.GetObjectKind().GroupVersionKind()
	if got.Kind != want.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), got.Kind, "must be "+want.Kind))
	}
	if got.GroupVersion() != want.GroupVersion() {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), got.GroupVersion().String(), "must be "+want.GroupVersion().String()))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(got.GroupKind(), obj.GetName(), errs)
	}
	return nil
}

func wrongKind(got, want schema.GroupVersionKind, why error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, want.Kind, why))
}

// packageOf is the package of a group's kinds, as messages name it.
func packageOf(group string) string {
	if group == "" || group == "events.k8s.io" {
		return "core"
	}
	first, _, _ := strings.Cut(group, ".")
	return first
}
