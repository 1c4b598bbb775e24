package cache

import (
	"strings"
	"testing"
)

func TestPairs(t *testing.T) {
	long := strings.Repeat("x", 20_000)
	have := map[string]string{"app": "web", "": "nameless", "empty": "", "a.long/one": long, long: "short", "zwölf": "äöü\x00"}
	p := pairsOf(have)
	for name, want := range have {
		if got, found := p.Lookup(name); !found || got != want {
			t.Errorf("%.20q: %.20q, %v", name, got, found)
		}
	}
	for _, name := range []string{"ap", "apps", "web", long[1:]} {
		if got, found := p.Lookup(name); found || p.Has(name) || p.Get(name) != "" {
			t.Errorf("%.20q is there: %.20q", name, got)
		}
	}
	for _, none := range []map[string]string{nil, {}} {
		if p := pairsOf(none); p.Has("") || len(p) > 0 {
			t.Errorf("%v has something: %q", none, p)
		}
	}
}
