package bounds

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
)

// maxDepth is how deeply messages may be nested; the JSON decoder has the same
// bound.
const maxDepth = 10_000

// prefix precedes every object in protobuf.
var prefix = []byte("k8s\x00")

// Protobuf refuses a body with more messages than JSON may have objects, or with
// messages nested too deeply. The body names its kind, or is of the given one;
// types has that kind's type. Unreadable bodies pass: decoding them reports what
// is wrong.
func Protobuf(body []byte, kind schema.GroupVersionKind, types *runtime.Scheme) error {
	envelope, ok := bytes.CutPrefix(body, prefix)
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
	typed := types.AllKnownTypes()[kind]
	if typed == nil {
		return nil
	}
	parts := 0
	return count(object.Raw, typed, 0, &parts)
}

// count walks the messages in data, which is of type t.
func count(data []byte, t reflect.Type, depth int, parts *int) error {
	if depth > maxDepth {
		return apierrors.NewBadRequest(fmt.Sprintf("the object is deeper than %d levels", maxDepth))
	}
	if t.Kind() == reflect.Struct { // an entry of a map is no object
		*parts++
	}
	if *parts > maxParts {
		return tooMany(*parts)
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
			if err := count(field, inner, depth+1, parts); err != nil {
				return err
			}
		}
		data = value[size:]
	}
	return nil
}

// fields are a message's fields that hold messages.
type fields map[protowire.Number]reflect.Type

// known caches the fields of types.
var known sync.Map // of reflect.Type

// messagesIn reads the tags of a type. A map is a list of messages whose second
// field is the value.
func messagesIn(t reflect.Type) fields {
	if found, ok := known.Load(t); ok {
		return found.(fields)
	}
	found := fields{}
	switch t.Kind() {
	case reflect.Map:
		if value := message(t.Elem()); value != nil {
			found[2] = value
		}
	case reflect.Struct:
		for i := range t.NumField() {
			tag := strings.Split(t.Field(i).Tag.Get("protobuf"), ",")
			if len(tag) < 2 || tag[0] != "bytes" {
				continue
			}
			number, err := strconv.Atoi(tag[1])
			if inner := message(t.Field(i).Type); inner != nil && err == nil {
				found[protowire.Number(number)] = inner
			}
		}
	}
	known.Store(t, found)
	return found
}

// message is the type of a field's message, nil for a scalar.
func message(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return t
	}
	return nil
}
