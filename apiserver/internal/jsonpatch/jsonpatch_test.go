package jsonpatch

import (
	"strings"
	"testing"

	library "gopkg.in/evanphx/json-patch.v4"
)

func TestApply(t *testing.T) {
	for text, want := range map[string]string{
		`[{"op":"replace","path":"/a","value":2}]`: "",
		`[{"op":"replace","path":""}]`:             "its value is missing",
		`[{"op":"test","path":""}]`:                "its value is missing",
		`[{"op":"add","path":"/b","value":{"c":"` + strings.Repeat("x", 1000) + `"}}` +
			strings.Repeat(`,{"op":"copy","from":"/b","path":"/b/x"},{"op":"copy","from":"/b","path":"/b/y"}`, 25) + `]`: "exceeding the limit",
	} {
		patch, err := library.DecodePatch([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Apply(patch, []byte(`{"a":1}`))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.100s: %v, want %q", text, err, want)
		}
	}
}
