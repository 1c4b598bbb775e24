package structural

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Patterns of a few bytes may compile to gigabytes, for everybody who reads the
// schema.
func TestPatternsAreBounded(t *testing.T) {
	schema := func(n int, pattern string) string {
		properties := make([]string, 0, n)
		for i := range n {
			properties = append(properties, fmt.Sprintf(`"p%d":{"type":"string","pattern":%q}`, i, pattern))
		}
		return `{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`
	}
	for _, test := range []struct {
		n       int
		pattern string
		refused bool
	}{
		{5000, `^[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?$`, false},
		{2, strings.Repeat("x{1000}", 1000), false},
		{9, strings.Repeat("x{1000}", 1000), true},
		{9, strings.Repeat("(x{10}){100}", 1000), true},
		{200, strings.Repeat("(?:[^/]{0,1000})", 30), true},
	} {
		errs := Check(field.NewPath("s"), propsOf(t, schema(test.n, test.pattern)))
		refused := len(errs) == 1 && strings.Contains(errs[0].Error(), "repeated too often")
		if refused != test.refused || !refused && len(errs) > 0 {
			t.Errorf("%d times %.40s: %v, want refused: %t", test.n, test.pattern, errs, test.refused)
		}
	}
}

func TestStepsOfPatterns(t *testing.T) {
	for _, text := range []string{"abc", "a{100}", "(a{10}b){10}", "(a|bc)*x+", "[a-z]{3,50}", "(?i)kubernetes"} {
		parsed, err := parsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		if n := steps(parsed); n < len(text)/4 || n > 4*len(text)*100 {
			t.Errorf("%s: %d steps", text, n)
		}
	}
	for _, bad := range []string{"(", "a{1001}", "(a{1000}){1000}", `\8`} {
		_, want := regexp.Compile(bad)
		if _, err := parsePattern(bad); err == nil || want == nil || err.Error() != want.Error() {
			t.Errorf("%s: %v, want %v", bad, err, want)
		}
	}
}
