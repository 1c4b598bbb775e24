package handlers

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// An object with very many levels must not grow without bound when it is
// indented, or written as YAML.
func TestLayoutOfManyLevels(t *testing.T) {
	const levels = 5_000
	deep := []byte(`{"spec":` + strings.Repeat(`{"a":`, levels) + `"\"}{"` + strings.Repeat("}", levels) + `}`)
	flat := []byte(`{"a":[1,2,{"b":"c,{\\"}],"d":null}`)
	for name, f := range map[string]form{
		"pretty": {media: runtime.ContentTypeJSON, pretty: true}, "YAML": {media: runtime.ContentTypeYAML},
	} {
		out, err := reformat(f, deep)
		if err != nil || len(out) > max(maxGrowth*len(deep), maxHarmlessSize) {
			t.Errorf("%s: %d bytes became %d, %v", name, len(deep), len(out), err)
		}
		if back, err := yaml.YAMLToJSON(out); err != nil || len(back) != len(deep) {
			t.Errorf("%s: it is not what it was: %d bytes, %v", name, len(back), err)
		}
		if out, err = reformat(f, flat); err != nil || strings.Count(string(out), "\n") < 5 {
			t.Errorf("%s: laid out as %q, %v", name, out, err)
		}
		back, err := yaml.YAMLToJSON(out)
		var want, have any
		if err != nil || json.Unmarshal(flat, &want) != nil || json.Unmarshal(back, &have) != nil {
			t.Fatalf("%s: %q: %v", name, out, err)
		}
	}
}
