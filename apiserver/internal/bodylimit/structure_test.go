package bodylimit

import (
	"slices"
	"testing"
)

func TestStructure(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":[1,"{\"[\\"],"b\\":null}`: `{:[1,],:null}`,
		`"{`:                            ``,
		`"\`:                            ``,
		``:                              ``,
	} {
		if got := string(slices.Collect(Structure([]byte(text)))); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
