package handlers

import (
	"bytes"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/scheme"
)

// checkJSONForm refuses an object that JSON can't hold, which objects are stored as. Protobuf can:
// a time after the year 9999, which nobody could read back, or a field of any content that is not
// JSON (runtime.RawExtension).
func checkJSONForm(object runtime.Object) error {
	text, err := scheme.Encode(object)
	if err != nil || !mayHaveStrangeYear(text) {
		return err
	}
	return json.Unmarshal(text, reflect.New(reflect.TypeOf(object).Elem()).Interface())
}

// mayHaveStrangeYear reports whether a text begins as a time would whose year has not four
// digits. Decoding every object again to be sure would take longer than all else in its request.
func mayHaveStrangeYear(text []byte) bool {
	for {
		_, after, found := bytes.Cut(text, []byte(`"`))
		if !found {
			return false
		}
		rest := bytes.TrimLeft(after, "0123456789")
		if digits := len(after) - len(rest); digits != 4 && bytes.HasPrefix(rest, []byte("-")) {
			return true
		}
		text = rest
	}
}
