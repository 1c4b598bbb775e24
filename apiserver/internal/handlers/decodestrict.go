package handlers

import (
	"reflect"

	fast "github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// unmarshal reads JSON into an empty object, and reports unknown and duplicate fields if
// anyone asks for them.
func unmarshal(body []byte, into runtime.Object, fieldValidation string) (strict []error, err error) {
	if fieldValidation == metav1.FieldValidationIgnore {
		return nil, kjson.UnmarshalCaseSensitivePreserveInts(body, into)
	}
	return unmarshalStrict(body, into)
}

// unmarshalStrict reads JSON into an empty object and reports unknown and
// duplicate fields as sigs.k8s.io/json does, whose messages users know. That
// library's four passes take longer than anything else in a create, and nearly
// all bodies are flawless: these are read by a faster decoder, which refuses
// everything that the other would refuse or report; what it refuses is read
// again.
func unmarshalStrict(body []byte, into runtime.Object) (strict []error, err error) {
	if hasStandardDecoding(into) {
		if fast.Unmarshal(body, into, fast.RejectUnknownMembers(true)) == nil {
			return nil, nil
		}
		reflect.ValueOf(into).Elem().SetZero()
	}
	return kjson.UnmarshalStrict(body, into)
}

// hasStandardDecoding excludes types with an UnmarshalJSON method: they have rules of their own.
func hasStandardDecoding(into runtime.Object) bool {
	_, own := into.(interface{ UnmarshalJSON([]byte) error })
	return !own && reflect.TypeOf(into).Elem().Kind() == reflect.Struct
}
