package bodylimit

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/scheme"
)

// maxDepth is how deeply messages may be nested; the JSON decoder has the same
// bound.
const maxDepth = 10_000

// Protobuf refuses a body with more messages than JSON may have objects, or with
// messages nested too deeply. The body names its kind, or is of the given one.
// Unreadable bodies pass: decoding them reports what is wrong.
func Protobuf(body []byte, kind schema.GroupVersionKind) error {
	envelope, ok := bytes.CutPrefix(body, []byte(scheme.ProtobufPrefix))
	if !ok || len(body) < 2*maxDepth { // a message takes two bytes
		return nil
	}
	var object runtime.Unknown
	if object.Unmarshal(envelope) != nil {
		return nil
	}
	if object.Kind != "" || object.APIVersion != "" {
		kind = schema.FromAPIVersionAndKind(object.APIVersion, object.Kind)
	}
	typed := scheme.Scheme.AllKnownTypes()[kind]
	if typed == nil {
		return nil
	}
	parts := 0
	return countMessages(object.Raw, typed, 0, &parts)
}

// countMessages walks the messages in data, which is of type t.
func countMessages(data []byte, t reflect.Type, depth int, parts *int) error {
	if depth > maxDepth {
		return apierrors.NewBadRequest(fmt.Sprintf("the object is nested deeper than %d levels", maxDepth))
	}
	if t.Kind() == reflect.Struct { // an entry of a map is no object
		*parts++
	}
	if *parts > maxParts {
		return tooManyPartsError(*parts)
	}
	within := messagesIn(t)
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil
		}
		value := data[n:]
		size := protowire.ConsumeFieldValue(number, wire, value)
		if size < 0 {
			return nil
		}
		if inner := within[number]; inner != nil && wire == protowire.BytesType {
			field, _ := protowire.ConsumeBytes(value)
			if err := countMessages(field, inner, depth+1, parts); err != nil {
				return err
			}
		}
		data = value[size:]
	}
	return nil
}

// messageFields are a message's fields that hold messages.
type messageFields map[protowire.Number]reflect.Type

// fieldCache caches the fields of types.
var fieldCache sync.Map // of reflect.Type

// messagesIn reads the tags of a type. A map is a list of messages whose second
// field is the value.
func messagesIn(t reflect.Type) messageFields {
	if found, ok := fieldCache.Load(t); ok {
		return found.(messageFields)
	}
	found := messageFields{}
	switch t.Kind() {
	case reflect.Map:
		if value := messageType(t.Elem()); value != nil {
			found[2] = value
		}
	case reflect.Struct:
		for i := range t.NumField() {
			tag := strings.Split(t.Field(i).Tag.Get("protobuf"), ",")
			if len(tag) < 2 || tag[0] != "bytes" {
				continue
			}
			number, err := strconv.Atoi(tag[1])
			if inner := messageType(t.Field(i).Type); inner != nil && err == nil {
				found[protowire.Number(number)] = inner
			}
		}
	}
	fieldCache.Store(t, found)
	return found
}

// messageType is the type of a field's message, nil for a scalar.
func messageType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return t
	}
	return nil
}
