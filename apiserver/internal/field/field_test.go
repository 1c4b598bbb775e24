package field_test

import (
	"errors"
	"testing"

	upstream "k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/field"
)

// TestPath: paths are written as upstream's are, from an object's root, too.
func TestPath(t *testing.T) {
	var root *field.Path
	for path, want := range map[*field.Path]string{
		root.Child("handler"): "handler",
		field.NewPath("spec", "a").Child("b", "c").Index(2).Key("k"): "spec.a.b.c[2][k]",
	} {
		if path.String() != want || path.Upstream().String() != want {
			t.Errorf("%q and %q, want %q", path, path.Upstream(), want)
		}
	}
}

// TestErrors: each error equals that of upstream's function of the same name.
func TestErrors(t *testing.T) {
	at, theirs, cause := field.NewPath("a"), upstream.NewPath("a"), errors.New("x")
	for _, pair := range [][2]*field.Error{
		{field.Invalid(at, 1, "d"), upstream.Invalid(theirs, 1, "d")},
		{field.Required(at, "d"), upstream.Required(theirs, "d")},
		{field.Forbidden(at, "d"), upstream.Forbidden(theirs, "d")},
		{field.NotSupported(at, "v", []string{"w"}), upstream.NotSupported(theirs, "v", []string{"w"})},
		{field.Duplicate(at, "v"), upstream.Duplicate(theirs, "v")},
		{field.NotFound(at, "v"), upstream.NotFound(theirs, "v")},
		{field.TooLong(at, "v", 3), upstream.TooLong(theirs, "v", 3)},
		{field.TooMany(at, 4, 3), upstream.TooMany(theirs, 4, 3)},
		{field.InternalError(at, cause), upstream.InternalError(theirs, cause)},
	} {
		if pair[0].Error() != pair[1].Error() || pair[0].Type != pair[1].Type {
			t.Errorf("%v, want %v", pair[0], pair[1])
		}
	}
}

// TestTwice: valid input is checked once, without allocations; errors have
// their path.
func TestTwice(t *testing.T) {
	at := field.NewPath("spec")
	wrong := false
	validate := func(at *field.Path) field.ErrorList {
		if path := at.Child("list").Index(3).Child("a", "b").Key("k"); wrong {
			return field.ErrorList{field.Required(path, "")}
		}
		return nil
	}
	var errs field.ErrorList
	if pieces := testing.AllocsPerRun(100, func() { errs = field.Twice(at, validate) }); pieces != 0 || len(errs) != 0 {
		t.Errorf("%v pieces of memory, %v", pieces, errs)
	}
	wrong = true
	if errs := field.Twice(at, validate); len(errs) != 1 || errs[0].Field != "spec.list[3].a.b[k]" {
		t.Errorf("found %v", errs)
	}
}
