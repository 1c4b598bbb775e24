package jsonpath

import (
	"encoding/json"
	"strings"
	"testing"
)

const object = `{
  "spec": {"replicas": 3, "names": ["a", "b", "c"], "a.b": "dotted"},
  "status": {"conditions": [
    {"type": "Ready", "status": "True", "weight": 2},
    {"type": "Done", "status": "False", "weight": 1, "extra": {}}
  ]}
}`

func TestFind(t *testing.T) {
	var value any
	if err := json.Unmarshal([]byte(object), &value); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		".spec.replicas":             `[3]`,
		".spec.missing.more":         `null`,
		".spec.names[0]":             `["a"]`,
		".spec.names[-1]":            `["c"]`,
		".spec.names[7]":             `null`,
		".spec.names[]":              `["a"]`,
		".spec.names[0,2]":           `["a","c"]`,
		".spec.names[0:2]":           `["a","b"]`,
		".spec.names[::2]":           `["a","c"]`,
		".spec.names[*]":             `["a","b","c"]`,
		".status.conditions[*].type": `["Ready","Done"]`,
		`.spec['a.b']`:               `["dotted"]`,
		`.spec.a\.b`:                 `["dotted"]`,
		`.spec['replicas','a.b']`:    `[3,"dotted"]`,
		"..type":                     `["Ready","Done"]`,
		`.status.conditions[?(@.type=="Ready")].status`:  `["True"]`,
		`.status.conditions[?(@.type == 'Done')].status`: `["False"]`,
		`.status.conditions[?(@.weight>1)].type`:         `["Ready"]`,
		`.status.conditions[?(@.weight<=1)].type`:        `["Done"]`,
		`.status.conditions[?(@.extra)].type`:            `["Done"]`,
		`.status.conditions[?(@.status!="True")].type`:   `["Done"]`,
		`.status.conditions[?(@.type=="a]b")].status`:    `null`,
	} {
		p, err := Compile(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		got, err := json.Marshal(p.Find(value))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, want %s, %v", path, got, want, err)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, path := range []string{"x", ".a[", ".a['b", ".a[x]", ".a[?(@.b==c)]", ".a[::0]", strings.Repeat(".a", 100)} {
		if _, err := Compile(path); err == nil {
			t.Errorf("%s was taken", path)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(`.status.conditions[?(@.type=="Ready")].status`)
	f.Fuzz(func(_ *testing.T, text string) {
		p, err := Compile(text)
		if err == nil {
			p.Find(map[string]any{"a": []any{int64(1), "x", map[string]any{"b": true}}})
		}
	})
}
