package cache

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/proto/costtest"
)

// TestManyValuesSelectTheSame: requirements with many values, beside others, select what the
// parsed selector does.
func TestManyValuesSelectTheSame(t *testing.T) {
	c := &Cache{options: Options{Logger: zap.NewNop()}}
	r := rand.New(rand.NewPCG(3, 3))
	packed := 0
	for range 2000 {
		var parts []string
		for _, key := range []string{"a", "b"} {
			values := make([]string, 1+r.IntN(2*fewValues+2))
			for i := range values {
				values[i] = strings.Repeat("x", r.IntN(2)) + fmt.Sprint(r.IntN(60)*r.IntN(2))
			}
			parts = append(parts, fmt.Sprintf("%s %s (%s)", key, []string{"in", "notin"}[r.IntN(2)], strings.Join(values, ",")))
		}
		parts = append(parts, []string{"c", "!c", "c=1"}[r.IntN(3)])
		parsed, err := labels.Parse(strings.Join(parts, ","))
		if err != nil {
			t.Fatal(err)
		}
		s := NewSelection("", parsed, nil)
		packed += len(s.many)
		for range 10 {
			own := labels.Set{}
			for _, key := range []string{"a", "b", "c"} {
				if r.IntN(4) > 0 {
					own[key] = strings.Repeat("x", r.IntN(2)) + fmt.Sprint(r.IntN(60)*r.IntN(2))
				}
			}
			e := &Entry{}
			e.index.Store(&index{labels: pairsOf(own)})
			if got := c.matches(s, e); got != parsed.Matches(own) {
				t.Fatalf("%s selects %v: %v", parsed, own, got)
			}
		}
	}
	if packed == 0 {
		t.Error("no requirement had many values")
	}
	many := NewSelection("", labels.SelectorFromSet(nil), nil)
	if !many.everything() || NewSelection("", labels.Nothing(), nil).everything() || !NewSelection("", nil, nil).everything() {
		t.Error("everything and nothing are confused")
	}
	large, err := labels.Parse("a in (" + strings.Repeat("v,", 3*fewValues) + strings.Join(strings.Split("abcdefghijklmnopqrstu", ""), ",") + ")")
	if err != nil {
		t.Fatal(err)
	}
	if NewSelection("", large, nil).everything() {
		t.Error("a selection by many values alone selects everything")
	}
}

// The cost of a selection grows with its length, and not with the square of it: a URL has room for hundreds
// of thousands of requirements, and 20,000 beside one with many values kept a processor busy for 5 seconds.
func TestThousandsOfRequirements(t *testing.T) {
	costtest.NotSquare(t, 2000, func(requirements int) func() {
		parsed, err := labels.Parse(strings.Repeat("a,", requirements) + "b in (" + strings.Join(strings.Split("abcdefghijklmnopqrstu", ""), ",") + ")")
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			if s := NewSelection("", parsed, nil); len(s.many) != 1 {
				t.Fatal("no requirement has many values")
			}
		}
	})
}

func BenchmarkManyValues(b *testing.B) {
	values := make([]string, 50000)
	for i := range values {
		values[i] = fmt.Sprintf("v%05d", i)
	}
	parsed, err := labels.Parse("app in (" + strings.Join(values, ",") + ")")
	if err != nil {
		b.Fatal(err)
	}
	c, e := &Cache{}, &Entry{}
	e.index.Store(&index{labels: pairsOf(labels.Set{"app": "v3x"})})
	for name, s := range map[string]Selection{"parsed": {Labels: parsed}, "packed": NewSelection("", parsed, nil)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if c.matches(s, e) {
					b.Fatal("selected")
				}
			}
		})
	}
}
