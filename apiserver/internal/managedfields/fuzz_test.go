package managedfields

import (
	"encoding/json"
	"testing"
)

// FuzzFields: text that is not a valid FieldsV1 is refused, and one that is
// accepted stays the same when it is written.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`, `{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}}}}`,
		`{"f:metadata":{"f:finalizers":{"v:\"x/y\"":{}}}}`, `{"i:3":{}}`, `{"f:a":{"f:a":{"f:a":{}}}}`, `{"f:a":[]}`, `{"f:a":{},"f:a":{"f:b":{}}}`,
		`{"f:\u0061":{}}`, `{"f:0":{"f:\b\u0000":{}}}`, `[`, `"`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := parseFields(&document{}, text)
		if err != nil || !json.Valid(text) {
			return // text that is not JSON is not stored
		}
		written := first.appendJSON(nil)
		if !json.Valid(written) {
			t.Fatalf("%q is written as %q", text, written)
		}
		second, err := parseFields(&document{}, written)
		if err != nil {
			t.Fatalf("%q is written as %q, which is refused: %v", text, written, err)
		}
		if again := second.appendJSON(nil); string(again) != string(written) {
			t.Errorf("%q is written as %q, and then as %q", text, written, again)
		}
	})
}
