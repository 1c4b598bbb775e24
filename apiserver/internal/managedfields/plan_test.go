package managedfields

import (
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/mergeschema"
	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

// TestNewcomers collects the field sets of new objects of every kind, filled at
// random, by their plans, and compares them with those found in their JSON.
func TestNewcomers(t *testing.T) {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), runtimeserializer.NewCodecFactory(scheme.Scheme)).NilChance(0.4).NumElements(0, 3).MaxDepth(9)
	collected, all := 0, 0
	for kind := range scheme.Scheme.AllKnownTypes() {
		made, err := scheme.Scheme.New(kind)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := made.(core.Object); !ok || kind.Version == "__internal" {
			continue
		}
		m := New(Options{
			Kind: kind, Schema: func() *mergeschema.Schema { return mergeschema.Of(reflect.TypeOf(made).Elem()) },
			New:   func() core.Object { obj, _ := scheme.Scheme.New(kind); return obj.(core.Object) },
			Reset: map[string][]string{"": {"status"}, "status": {"spec", "metadata.labels"}},
			Clock: clock.RealClock{},
		})
		for round := range 12 {
			obj := m.options.New()
			if round > 0 {
				fill.Fill(obj)
			}
			if round%2 == 0 {
				simplify(reflect.ValueOf(obj).Elem(), 0)
			}
			for way := range m.schemas() {
				all++
				if compareNewcomer(t, m, way, obj) {
					collected++
				}
			}
		}
	}
	t.Logf("%d of %d objects were collected by their plans", collected, all)
	if collected < all/4 {
		t.Errorf("only %d of %d objects were collected by their plans", collected, all)
	}
}

// compareNewcomer reports whether obj was collected by its plan.
func compareNewcomer(t *testing.T, m *Tracker, way string, obj core.Object) bool {
	t.Helper()
	var planned, compared difference
	if !planned.collect(m.newcomers()[way], obj) {
		return false
	}
	text := func() string { return compared.text.String() }
	if err := compared.read(m.empty(), obj); err != nil {
		t.Fatalf("%T: %v\n%s", obj, err, text())
	}
	if err := compared.compare(m.schemas()[way]); err != nil {
		t.Fatalf("%T was collected by its plan, but is refused otherwise: %v\n%s", obj, err, text())
	}
	if !compared.removed.empty() {
		t.Fatalf("%T: a new object lacks %s", obj, compared.removed.json())
	}
	if got, want := string(planned.changed.json()), string(compared.changed.json()); got != want {
		t.Fatalf("%T:\n%s\nby its plan has\n%s\nwant\n%s", obj, text(), got, want)
	}
	return true
}

// simplify replaces strings by some that need no escaping.
func simplify(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(simple(v.String()))
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && depth < 30 {
			simplify(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			simplify(v.Field(i), depth+1)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			simplify(v.Index(i), depth+1)
		}
	case reflect.Map:
		if v.IsNil() || v.Type().Key().Kind() != reflect.String || !v.CanSet() {
			return
		}
		out := reflect.MakeMap(v.Type())
		for each := v.MapRange(); each.Next(); {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString(simple(each.Key().String()))
			value.Set(each.Value())
			simplify(value, depth+1)
			out.SetMapIndex(key, value)
		}
		v.Set(out)
	}
}

func simple(text string) string {
	return strings.Map(func(r rune) rune { return 'a' + r%26 }, text)
}

// TestNewcomersSeldomLeft: the usual pod is collected by its plan.
func TestNewcomersSeldomLeft(t *testing.T) {
	m := podTracker(t)
	pod := newPod()
	pod.CreationTimestamp = metav1.Now()
	for way := range m.schemas() {
		if !compareNewcomer(t, m, way, pod) {
			t.Errorf("by %q: not collected", way)
		}
	}
}
