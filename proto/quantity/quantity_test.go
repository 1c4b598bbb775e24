package quantity

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestHuge(t *testing.T) {
	for text, want := range map[string]bool{
		"1": false, "1e99": false, "1E-99": false, "0.5Gi": false, "": false, "e1000": false, "abc": false,
		"1e100": true, "-1E+0000100": true, " 1e-999999999 ": true, "1e" + strings.Repeat("0", 300) + "1": false,
		strings.Repeat("9", MaxText+1) + "e10": true, strings.Repeat("9", MaxText+1) + "E-9": true, "." + strings.Repeat("9", MaxText) + "e1": true,
		strings.Repeat("9", MaxText+1): true, strings.Repeat("9", MaxText+1) + "Ki": true, strings.Repeat("9", MaxText+1) + "KiB": false,
	} {
		if got := Huge([]byte(text)); got != want {
			t.Errorf("%.40q: %v", text, got)
		}
	}
}

func TestFindHuge(t *testing.T) {
	for text, want := range map[string]string{
		`{"spec":{"containers":[{"resources":{"limits":{"cpu":"1e100"}}}]}}`: "1e100",
		`{"a":[{"sizeLimit":1e100}]}`:                                        "1e100",
		`{"metadata":{"annotations":{"a":"1e100"}},"limits":{"cpu":"1"}}`:    "",
	} {
		var object any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&object); err != nil {
			t.Fatal(err)
		}
		if got, found := FindHuge(object); found != (want != "") || found && got != want {
			t.Errorf("%s: %q, %v", text, got, found)
		}
	}
}

// Who reports it again only if it is another would otherwise do so each time.
func TestFindHugeFindsTheSame(t *testing.T) {
	object := map[string]any{"limits": map[string]any{"a": "1e100", "b": "1e200", "c": "1e300", "d": "1e400"}}
	for range 100 {
		if text, found := FindHuge(object); !found || text != "1e100" {
			t.Fatalf("%q, %v", text, found)
		}
	}
}
