package registry

import (
	"context"
	"reflect"

	"kctl/proto/core"
)

// WithStatus completes the strategy of a kind that has a field Status: creates
// and updates can't set it, and /status changes nothing but it and metadata.
// The strategy's own Prepare functions run after that; Status.Validate may be
// set.
func WithStatus[T core.Object](s Strategy[T]) Strategy[T] {
	created, updated := s.Create.Prepare, s.Update.Prepare
	s.Create.Prepare = func(ctx context.Context, obj T) {
		reflect.ValueOf(obj).Elem().FieldByName("Status").SetZero()
		if created != nil {
			created(ctx, obj)
		}
	}
	s.Update.Prepare = func(ctx context.Context, obj, old T) {
		copyFields(obj, old, func(field string) bool { return field == "Status" })
		if updated != nil {
			updated(ctx, obj, old)
		}
	}
	if s.Status == nil {
		s.Status = &UpdateStrategy[T]{}
	}
	status := s.Status.Prepare
	s.Status.Prepare = func(ctx context.Context, obj, old T) {
		copyFields(obj, old, func(field string) bool { return field != "Status" })
		if status != nil {
			status(ctx, obj, old)
		}
	}
	return s
}

// copyFields copies fields of old into obj: those that which accepts, except kind
// and metadata.
func copyFields(obj, old core.Object, which func(field string) bool) {
	to, from := reflect.ValueOf(obj).Elem(), reflect.ValueOf(old).Elem()
	for i := range to.NumField() {
		switch name := to.Type().Field(i).Name; name {
		case "TypeMeta", "ObjectMeta":
		default:
			if which(name) {
				to.Field(i).Set(from.Field(i))
			}
		}
	}
}
