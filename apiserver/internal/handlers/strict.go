package handlers

import (
	"reflect"

	fast "github.com/go-json-experiment/json"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// unmarshalStrict reads JSON into an empty object and tells of unknown and
// doubled fields, as sigs.k8s.io/json does, whose words users are used to. Its
// four passes take longer than anything else in a create, and nearly all bodies
// are flawless: a quicker decoder reads these, one that refuses whatever the
// other would refuse or tell of, and what it refuses is read again.
func unmarshalStrict(body []byte, into runtime.Object) (strict []error, err error) {
	if readsFast(into) {
		if fast.Unmarshal(body, into, fast.RejectUnknownMembers(true)) == nil {
			return nil, nil
		}
		reflect.ValueOf(into).Elem().SetZero()
	}
	return kjson.UnmarshalStrict(body, into)
}

// readsFast leaves out types that read themselves: they have rules of their own.
func readsFast(into runtime.Object) bool {
	_, own := into.(interface{ UnmarshalJSON([]byte) error })
	return !own && reflect.TypeOf(into).Elem().Kind() == reflect.Struct
}
