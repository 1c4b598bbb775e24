package structural

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"kctl/apiserver/internal/resources/check"
)

// Coerce brings the metadata of an object, and of the objects embedded in it, into
// its proper form. It returns the paths of unknown fields that it dropped, those of
// the object and those of embedded ones, which are reported after all others.
func (s *Schema) Coerce(object map[string]any) (unknown, embedded []string, err error) {
	if unknown, err = coerceMetadata(object, ""); err != nil {
		return unknown, nil, err
	}
	embedded, err = s.coerceEmbedded(object, "", true)
	slices.Sort(embedded)
	return unknown, embedded, err
}

func (s *Schema) coerceEmbedded(value any, path string, root bool) (unknown []string, err error) {
	if s == nil || !s.holdsEmbedded() {
		return nil, nil
	}
	switch v := value.(type) {
	case map[string]any:
		if s.embedded && !root {
			if unknown, err = coerceMetadata(v, path); err != nil {
				return nil, err
			}
		}
		for name, item := range v {
			below := s.properties[name]
			if below == nil {
				below = s.values
			}
			more, err := below.coerceEmbedded(item, join(path, name), false)
			if err != nil {
				return nil, err
			}
			unknown = append(unknown, more...)
		}
	case []any:
		for i, item := range v {
			more, err := s.items.coerceEmbedded(item, path+"["+strconv.Itoa(i)+"]", false)
			if err != nil {
				return nil, err
			}
			unknown = append(unknown, more...)
		}
	}
	return unknown, nil
}

// holdsEmbedded reports whether a value may contain an embedded object at all.
func (s *Schema) holdsEmbedded() bool {
	return s != nil && s.holds
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func coerceMetadata(object map[string]any, path string) ([]string, error) {
	found, ok := object["metadata"]
	if !ok {
		return nil, nil
	}
	if simple(found) {
		return nil, nil
	}
	text, err := json.Marshal(found)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	var meta metav1.ObjectMeta
	strict, err := kjson.UnmarshalStrict(text, &meta, kjson.DisallowUnknownFields)
	if err != nil {
		if path == "" {
			return nil, err
		}
		return nil, field.Invalid(field.NewPath(join(path, "metadata")), found, err.Error())
	}
	if object["metadata"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&meta); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	var unknown []string
	for _, one := range strict {
		if at, ok := errors.AsType[kjson.FieldError](one); ok {
			unknown = append(unknown, join(path, "metadata."+at.FieldPath()))
		}
	}
	return unknown, nil
}

// Repair is Coerce for an object that was stored, maybe by a server that did not look at its metadata:
// what is malformed is dropped, too, and a generation is given.
func (s *Schema) Repair(object map[string]any) {
	repairMetadata(object)
	if meta, ok := object["metadata"].(map[string]any); ok && (meta["generation"] == nil || meta["generation"] == int64(0)) {
		meta["generation"] = int64(1)
	}
	s.repairEmbedded(object, true)
}

func (s *Schema) repairEmbedded(value any, root bool) {
	if !s.holdsEmbedded() {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		if s.embedded && !root {
			maps.DeleteFunc(v, func(name string, item any) bool {
				_, text := item.(string)
				return (name == "apiVersion" || name == "kind") && !text
			})
			repairMetadata(v)
		}
		for name, item := range v {
			below := s.properties[name]
			if below == nil {
				below = s.values
			}
			below.repairEmbedded(item, false)
		}
	case []any:
		for _, item := range v {
			s.items.repairEmbedded(item, false)
		}
	}
}

func repairMetadata(object map[string]any) {
	found := object["metadata"]
	if settledMetadata(found) {
		return
	}
	if _, err := coerceMetadata(object, ""); err == nil {
		return
	}
	fields, ok := found.(map[string]any)
	if !ok {
		return
	}
	var whole metav1.ObjectMeta
	for name, item := range fields {
		text, err := json.Marshal(map[string]any{name: item})
		if err == nil && kjson.UnmarshalCaseSensitivePreserveInts(text, &metav1.ObjectMeta{}) == nil {
			_ = kjson.UnmarshalCaseSensitivePreserveInts(text, &whole) // it has just been read
		}
	}
	if repaired, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&whole); err == nil {
		object["metadata"] = repaired
	}
}

// Settle is Coerce for an object that was coerced when it came, and that plugins or a merge
// have changed since: what only the server sets is not looked at again.
func (s *Schema) Settle(object map[string]any) error {
	if !settledMetadata(object["metadata"]) {
		if _, err := coerceMetadata(object, ""); err != nil {
			return err
		}
	}
	_, err := s.coerceEmbedded(object, "", true)
	return err
}

// settledMetadata reports whether metadata is as Coerce would leave it, with what the server
// has set and what was coerced.
func settledMetadata(value any) bool {
	meta, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for name, item := range meta {
		switch name {
		case "creationTimestamp", "deletionTimestamp":
			ok = isTime(item)
		case "deletionGracePeriodSeconds":
			_, ok = item.(int64)
		case "managedFields", "ownerReferences":
			ok = settledList(item, settledEntry)
		case "finalizers":
			ok = settledList(item, isText)
		default:
			ok = simpleField(name, item)
		}
		if !ok {
			return false
		}
	}
	return true
}

// settledList reports whether value is a list of some elements, each of which is settled.
func settledList(value any, settled func(any) bool) bool {
	list, ok := value.([]any)
	return ok && len(list) > 0 && !slices.ContainsFunc(list, func(v any) bool { return !settled(v) })
}

// settledEntry reports whether an owner reference or an entry of managedFields has only
// fields of these, in their proper form.
func settledEntry(value any) bool {
	entry, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for name, item := range entry {
		switch name {
		case "apiVersion", "kind", "name", "uid", "manager", "operation", "fieldsType", "subresource":
			ok = isText(item)
		case "controller", "blockOwnerDeletion":
			_, ok = item.(bool)
		case "fieldsV1":
			_, ok = item.(map[string]any)
		case "time":
			ok = isTime(item)
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return true
}

// ValidateMetadata returns why the metadata of an object can't be read: plugins may have
// changed it since it was decoded.
func ValidateMetadata(object map[string]any) field.ErrorList {
	found, ok := object["metadata"].(map[string]any)
	if !ok || settledMetadata(found) {
		return nil
	}
	var meta metav1.ObjectMeta
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found, &meta); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("metadata"), found, err.Error())}
	}
	return nil
}

// simple reports whether metadata has only common fields, in their proper form,
// so that no closer look is needed.
func simple(value any) bool {
	meta, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for name, item := range meta {
		if !simpleField(name, item) {
			return false
		}
	}
	return true
}

// simpleField reports whether a field of metadata is a common one in its proper form. Empty
// ones are not: they are left out.
func simpleField(name string, item any) bool {
	switch name {
	case "name", "namespace", "generateName", "uid", "resourceVersion":
		return isText(item)
	case "generation":
		number, ok := item.(int64)
		return ok && number != 0
	case "labels", "annotations":
		texts, ok := item.(map[string]any)
		for _, text := range texts {
			if _, isText := text.(string); !isText {
				return false
			}
		}
		return ok && len(texts) > 0
	}
	return false
}

func isText(value any) bool {
	text, ok := value.(string)
	return ok && text != ""
}

// isTime reports whether value is a point in time as it is always written: in UTC, in whole seconds.
func isTime(value any) bool {
	text, _ := value.(string)
	_, err := time.Parse(time.RFC3339, text)
	return err == nil && len(text) == len("2006-01-02T15:04:05Z")
}

// ValidateEmbedded validates the kind and metadata of objects embedded in an
// object.
func (s *Schema) ValidateEmbedded(path *field.Path, value any, root bool) (errs field.ErrorList) {
	if s == nil || !s.holdsEmbedded() {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		if s.embedded && !root {
			errs = validateObject(path, v)
		}
		for name, item := range v {
			below, at := s.properties[name], path.Child(name)
			if below == nil {
				below, at = s.values, path.Key(name)
			}
			errs = append(errs, below.ValidateEmbedded(at, item, false)...)
		}
	case []any:
		for i, item := range v {
			errs = append(errs, s.items.ValidateEmbedded(path.Index(i), item, false)...)
		}
	}
	return errs
}

func validateObject(path *field.Path, object map[string]any) (errs field.ErrorList) {
	errs = append(typeField(path, object, "apiVersion", func(text string) string {
		if _, err := schema.ParseGroupVersion(text); err != nil {
			return err.Error()
		}
		return ""
	}), typeField(path, object, "kind", func(text string) string {
		if problems := utilvalidation.IsDNS1035Label(lower(text)); len(problems) > 0 {
			return "may have mixed case, but should otherwise match: " + strings.Join(problems, ",")
		}
		return ""
	})...)
	found, ok := object["metadata"].(map[string]any)
	if !ok {
		return errs
	}
	var meta metav1.ObjectMeta
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found, &meta); err != nil {
		return append(errs, field.Invalid(path.Child("metadata"), "", err.Error()))
	}
	if meta.Name == "" { // it need not have one yet
		meta.Name = "placeholder"
	}
	return append(errs, validation.ValidateObjectMeta(&meta, meta.Namespace != "", check.NameIsSegment, path.Child("metadata"))...)
}

// typeField checks the version or kind of an object; problem says what is wrong with a text.
func typeField(path *field.Path, object map[string]any, name string, problem func(text string) string) field.ErrorList {
	value, given := object[name]
	text, isText := value.(string)
	switch at := path.Child(name); {
	case !given:
		return field.ErrorList{field.Required(at, "")}
	case !isText:
		return field.ErrorList{field.Invalid(at, value, "must be a string")}
	case text == "":
		return field.ErrorList{field.Invalid(at, text, "must not be empty")}
	case problem(text) != "":
		return field.ErrorList{field.Invalid(at, text, problem(text))}
	}
	return nil
}
