package raw

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestSetResourceVersion(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"put first", `{"kind":"Pod","metadata":{"name":"a"}}`, `{"kind":"Pod","metadata":{"resourceVersion":"7","name":"a"}}`},
		{"replaced", `{"metadata":{"name":"a","resourceVersion":"123","uid":"u"}}`, `{"metadata":{"name":"a","resourceVersion":"7","uid":"u"}}`},
		{"empty metadata", `{"metadata":{},"x":1}`, `{"metadata":{"resourceVersion":"7"},"x":1}`},
		{"no metadata", `{"kind":"Pod"}`, `{"metadata":{"resourceVersion":"7"},"kind":"Pod"}`},
		{"empty object", `{}`, `{"metadata":{"resourceVersion":"7"}}`},
		{"null", `{"kind":"Pod","metadata":null,"x":1}`, `{"kind":"Pod","metadata":{"resourceVersion":"7"},"x":1}`},
		{"white space", " {\n \"metadata\" : { \"resourceVersion\" : \"1\" } }", " {\n \"metadata\" : { \"resourceVersion\" : \"7\" } }"},
		{"not the nested ones", `{"spec":{"metadata":{"resourceVersion":"1"}},"metadata":{"ownerReferences":[{"resourceVersion":"2"}]}}`,
			`{"spec":{"metadata":{"resourceVersion":"1"}},"metadata":{"resourceVersion":"7","ownerReferences":[{"resourceVersion":"2"}]}}`},
		{"strings that look like it", `{"data":"\"metadata\":{\\","metadata":{"annotations":{"a":"}\"resourceVersion\":\"3\"{"}}}`,
			`{"data":"\"metadata\":{\\","metadata":{"resourceVersion":"7","annotations":{"a":"}\"resourceVersion\":\"3\"{"}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := []byte(c.in)
			out, err := SetResourceVersion(in, 7)
			if err != nil {
				t.Fatal(err)
			}
			if string(out) != c.out {
				t.Errorf("got  %s\nwant %s", out, c.out)
			}
			if string(in) != c.in {
				t.Errorf("the input was changed to %s", in)
			}
		})
	}
}

func TestSameButVersion(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"first", `{"metadata":{"resourceVersion":"7","name":"a"}}`, `{"metadata":{"name":"a"}}`},
		{"last", `{"metadata":{"name":"a", "resourceVersion":"7"}}`, `{"metadata":{"name":"a"}}`},
		{"middle", `{"metadata":{"name":"a","resourceVersion":"7", "uid":"u"}}`, `{"metadata":{"name":"a","uid":"u"}}`},
		{"only", `{"metadata":{"resourceVersion":"7"}}`, `{"metadata":{}}`},
		{"none", `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"}}`},
		{"no metadata", `{"kind":"Pod"}`, `{"kind":"Pod"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if same, err := SameButVersion([]byte(c.in), []byte(c.out)); !same || err != nil {
				t.Errorf("%s is not %s: %v", c.in, c.out, err)
			}
			for i := range c.out {
				other := []byte(c.out)
				other[i] ^= 1
				if same, _ := SameButVersion([]byte(c.in), other); same {
					t.Errorf("%s is %s", c.in, other)
				}
				if same, _ := SameButVersion([]byte(c.in), []byte(c.out[:i])); same {
					t.Errorf("%s is %s", c.in, c.out[:i])
				}
			}
		})
	}
}

func TestLabels(t *testing.T) {
	got, err := Labels([]byte(`{"metadata":{"name":"a","labels":{"app":"web","é":"\u00e9"}}}`))
	if want := map[string]string{"app": "web", "é": "é"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := Labels([]byte(`{"metadata":{"name":"a"}}`)); got != nil || err != nil {
		t.Errorf("no labels: got %v, %v", got, err)
	}
	if got, err := Labels([]byte(`{"metadata":null}`)); got != nil || err != nil {
		t.Errorf("no metadata: got %v, %v", got, err)
	}
	if _, err := Labels([]byte(`{"metadata":{"labels":[1]}}`)); err == nil {
		t.Error("labels that are a list: no error")
	}
}

func TestMalformedIsRefused(t *testing.T) {
	for _, in := range []string{"", " ", "[]", "null", `{`, `{"metadata"`, `{"metadata":`, `{"metadata":{`, `{"metadata":{"a"}}`,
		`{"metadata":{"a":1`, `{"metadata":"x"}`, `{"metadata":nul}`, `{"a":"\"`, `{"a":"\\\"}`, `{"a":}`, `{"a":1 "b":2}`, `{,}`} {
		if out, err := SetResourceVersion([]byte(in), 7); err == nil {
			t.Errorf("%q: got %q and no error", in, out)
		}
	}
}

// FuzzSetResourceVersion compares the scanner with encoding/json: any JSON
// object comes out with the same content, and the version in its place.
func FuzzSetResourceVersion(f *testing.F) {
	f.Add([]byte(`{"kind":"Pod","metadata":{"name":"a","resourceVersion":"1"},"spec":{"x":[1,"]",{}]}}`))
	f.Add([]byte(`{"metadata":{"annotations":{"a\"b":"}"}}}`))
	f.Add([]byte(`{"a":1e5,"b":-0.1,"c":true,"d":null}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := SetResourceVersion(in, 42)
		var before map[string]any
		if json.Unmarshal(in, &before) != nil || before == nil {
			return // it only must not panic
		}
		if err != nil || hasAmbiguousKeys(in) {
			return
		}
		var after map[string]any
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%q became %q: %v", in, out, err)
		}
		meta, _ := before["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		meta["resourceVersion"] = "42"
		before["metadata"] = meta
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q", in, out)
		}
	})
}

// hasAmbiguousKeys reports escaped or duplicate keys, for which encoding/json
// and the scanner may differ.
func hasAmbiguousKeys(in []byte) bool {
	seen := map[byte]int{}
	for _, c := range in {
		seen[c]++
	}
	return seen['\\'] > 0 || countOf(in, `"metadata"`) > 1 || countOf(in, `"resourceVersion"`) > 1
}

func countOf(in []byte, s string) int {
	n := 0
	for i := 0; i+len(s) <= len(in); i++ {
		if string(in[i:i+len(s)]) == s {
			n++
		}
	}
	return n
}

func BenchmarkSetResourceVersion(b *testing.B) {
	object := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"3f1","labels":{"app":"web"}},"spec":{` +
		string(make([]byte, 0)) + `"containers":[{"name":"c","image":"registry/x:1"}]}}`)
	b.SetBytes(int64(len(object)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := SetResourceVersion(object, 123456); err != nil {
			b.Fatal(err)
		}
	}
}

// An object that is known to have no resourceVersion gets one like any other.
func TestAppendNewResourceVersion(t *testing.T) {
	for _, object := range []string{
		`{}`, ` { } `, `{"kind":"Pod"}`, `{"metadata":{}}`, `{"metadata":{"name":"a"}}`, `{"metadata": { "name":"resourceVersion"},"spec":{"a":[1]}}`,
		`{"kind":"Pod","spec":{"metadata":{"resourceVersion":"1"}},"metadata":{"labels":{"resourceVersion":"2"}}}`, `{"metadata":null}`, `{"metadata":[]}`,
		`{"metadata"`, `{"metadata":`, `[]`, ``,
	} {
		want, wantErr := AppendWithResourceVersion([]byte("x"), []byte(object), 1234)
		got, err := AppendNewResourceVersion([]byte("x"), []byte(object), 1234)
		if string(got) != string(want) || (err == nil) != (wantErr == nil) {
			t.Errorf("%s became %s, %v; want %s, %v", object, got, err, want, wantErr)
		}
	}
}
