package flowcontrol

import (
	"context"
	"fmt"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// maintainer is the field manager of what Bootstrap writes; upstream's name.
const maintainer = "api-priority-and-fairness-config-producer-v1"

// Bootstrap brings the levels and schemas of every cluster up to date, and may
// be run again at any time (Kubernetes docs, "API Priority and Fairness",
// "Maintenance of the Mandatory and Suggested Configuration Objects"): it
// creates missing ones, corrects those that the server maintains, leaves users'
// alone, and removes those of earlier releases.
func Bootstrap(ctx context.Context, schemaStore *registry.Store[*flowcontrolv1.FlowSchema],
	levelStore *registry.Store[*flowcontrolv1.PriorityLevelConfiguration]) error {
	// Levels first, so that no schema dangles.
	err := maintain(ctx, levelStore, BuiltinLevels(),
		func(stored, want *flowcontrolv1.PriorityLevelConfiguration) bool {
			if want.Name == exemptName && !isAutoUpdated(stored) {
				return true // users may set its shares, and validation protects the rest
			}
			return equality.Semantic.DeepEqual(stored.Spec, want.Spec)
		},
		func(stored, want *flowcontrolv1.PriorityLevelConfiguration) { stored.Spec = want.Spec })
	if err != nil {
		return fmt.Errorf("priority levels: %w", err)
	}
	err = maintain(ctx, schemaStore, BuiltinSchemas(),
		func(stored, want *flowcontrolv1.FlowSchema) bool {
			return equality.Semantic.DeepEqual(stored.Spec, want.Spec)
		},
		func(stored, want *flowcontrolv1.FlowSchema) { stored.Spec = want.Spec })
	if err != nil {
		return fmt.Errorf("flow schemas: %w", err)
	}
	return nil
}

// isAutoUpdated reports whether the server maintains the object's spec: the annotation
// says so or, without it, the spec has never been changed.
func isAutoUpdated(obj core.Object) bool {
	switch obj.GetAnnotations()[autoUpdateAnnotation] {
	case "true":
		return true
	case "false":
		return false
	}
	return obj.GetGeneration() == 1
}

// maintain does it for one kind. same reports whether an object is as it should
// be, and set makes it so.
func maintain[T core.Object](ctx context.Context, store *registry.Store[T], builtin []T, same func(stored, want T) bool,
	set func(stored, want T)) error {
	list, _, err := store.ListTyped(ctx, "", registry.ListOptions{})
	if err != nil {
		return err
	}
	stored := make(map[string]T, len(list))
	for _, obj := range list {
		stored[obj.GetName()] = obj
	}
	for _, want := range builtin {
		name := want.GetName()
		is, there := stored[name]
		delete(stored, name)
		switch {
		case !there:
			_, err = store.Create(ctx, want, registry.Admission{FieldManager: maintainer}, &metav1.CreateOptions{})
		case !isAutoUpdated(is) && !isMandatory(name), hasAutoUpdateAnnotation(is) == isAutoUpdated(is) && same(is, want):
			continue
		default:
			err = registry.Modify(ctx, store, registry.Target{Name: name}, maintainer, func(current core.Object) (core.Object, error) {
				return current, setSpec(current.(T), want, set)
			})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return deleteObsolete(ctx, store, stored)
}

func isMandatory(name string) bool { return name == exemptName || name == catchAllName }

// hasAutoUpdateAnnotation reports whether the annotation says that the server maintains the object.
func hasAutoUpdateAnnotation(obj core.Object) bool {
	return obj.GetAnnotations()[autoUpdateAnnotation] == "true"
}

// setSpec makes obj as it should be, and sets the annotation.
func setSpec[T core.Object](obj, want T, set func(stored, want T)) error {
	if isAutoUpdated(obj) {
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[autoUpdateAnnotation] = "true"
		obj.SetAnnotations(annotations)
	}
	set(obj, want)
	return nil
}

// deleteObsolete deletes objects that are marked as maintained by the server but unknown
// to it: an earlier release created them.
func deleteObsolete[T core.Object](ctx context.Context, store *registry.Store[T], rest map[string]T) error {
	for name, obj := range rest {
		if !hasAutoUpdateAnnotation(obj) {
			continue
		}
		uid, version := obj.GetUID(), obj.GetResourceVersion()
		err := store.DeleteTyped(ctx, "", name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// DanglingCondition is the condition for whether a schema's level is missing, and
// whether that changes the schema's status.
func DanglingCondition(s *flowcontrolv1.FlowSchema, missing bool, now metav1.Time) (want flowcontrolv1.FlowSchemaCondition, news bool) {
	level := s.Spec.PriorityLevelConfiguration.Name
	want = flowcontrolv1.FlowSchemaCondition{
		Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionFalse, LastTransitionTime: now, Reason: "Found",
		Message: fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", level),
	}
	if missing {
		want.Status, want.Reason = flowcontrolv1.ConditionTrue, "NotFound"
		want.Message = fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q but there is no such object", level)
	}
	for _, is := range s.Status.Conditions {
		if is.Type != want.Type {
			continue
		}
		if is.Status == want.Status {
			want.LastTransitionTime = is.LastTransitionTime
		}
		return want, is != want
	}
	return want, true
}
