package negotiation

import (
	"net/http"
	"strings"
	"testing"
)

// TestClauses: the preferred media type comes first, and what is not a media
// type is left out.
func TestClauses(t *testing.T) {
	for header, want := range map[string]string{
		"":                                          "",
		"garbage":                                   "",
		"*/*, application/yaml":                     "application/yaml */*",
		"application/*, application/yaml":           "application/yaml application/*",
		"application/json;q=0.5, a/b;q=0.9":         "a/b application/json",
		"application/json;q=0, a/b;q=0.1":           "a/b application/json",
		"a/b;q=0.9, application/json;q=x":           "a/b application/json",
		"*, application/json;x, a/b;as=":            "application/json a/b */*",
		"a/b;as=Table, a/c;as=Table":                "a/b a/c",
		"text/html,application/xml;q=0.9,*/*;q=0.8": "text/html application/xml */*",
	} {
		var got []string
		for _, clause := range Clauses(&http.Request{Header: http.Header{"Accept": {header}}}) {
			got = append(got, clause.Media)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}

func TestClausesAreBounded(t *testing.T) {
	parameters := func(number int) string { return strings.Repeat(";c=d", number) }
	for _, c := range []struct {
		clause       string
		number, want int
	}{
		{"a/b", 1, 1}, {"a/b", maxParts - 1, maxParts - 1}, {"a/b", maxParts, maxParts}, {"a/b", maxParts + 1, maxParts}, {"a/b", 3 * maxParts, maxParts},
		{"a/b;c=d", 3 * maxParts, maxParts / 2},
		{"a/b" + parameters(maxParts-1), 1, 1}, {"a/b" + parameters(maxParts-1), 2, 1}, {"a/b" + parameters(maxParts), 1, 0},
	} {
		header := strings.TrimSuffix(strings.Repeat(c.clause+",", c.number), ",")
		if got := Clauses(&http.Request{Header: http.Header{"Accept": {header}}}); len(got) != c.want {
			t.Errorf("of %d clauses that begin with %.10s, and have %d bytes, %d count, want %d", c.number, c.clause, len(c.clause), len(got), c.want)
		}
	}
}
