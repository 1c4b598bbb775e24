package handlers

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// checkJSONForm refuses an object that JSON can't hold, which objects are stored as. Protobuf can:
// a time after the year 9999, which nobody could read back, or a field of any content that is not
// JSON (runtime.RawExtension).
func checkJSONForm(object runtime.Object) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, reflect.New(reflect.TypeOf(object).Elem()).Interface())
}
