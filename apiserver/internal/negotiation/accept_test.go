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
	for clauses, want := range map[int]int{1: 1, maxClauses - 1: maxClauses - 1, maxClauses: maxClauses, maxClauses + 1: maxClauses, 3 * maxClauses: maxClauses} {
		header := strings.TrimSuffix(strings.Repeat("a/b;c=d,", clauses), ",")
		if got := Clauses(&http.Request{Header: http.Header{"Accept": {header}}}); len(got) != want {
			t.Errorf("of %d clauses %d count", clauses, len(got))
		}
	}
}
