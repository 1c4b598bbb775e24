package scheme

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
)

// TestEncodeAsTheStandardLibrary compares the fast encoder's bytes with those
// of encoding/json, for objects of every kind filled at random.
func TestEncodeAsTheStandardLibrary(t *testing.T) {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), runtimeserializer.NewCodecFactory(Scheme)).NilChance(0.5).NumElements(0, 2).MaxDepth(8)
	for kind := range Scheme.AllKnownTypes() {
		if kind.Version == "__internal" {
			continue
		}
		for range 4 {
			obj, err := Scheme.New(kind)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, obj)
			fill.Fill(obj)
			compare(t, obj)
		}
	}
}

func compare(t *testing.T, obj any) {
	t.Helper()
	want, wantErr := json.Marshal(obj)
	got, err := Encode(obj)
	if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
		t.Fatalf("%T:\n%s, %v\nencoding/json:\n%s, %v", obj, got, err, want, wantErr)
	}
	var written bytes.Buffer
	if err := Write(&written, obj); (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(written.Bytes(), want) {
		t.Fatalf("%T is written as\n%s, %v", obj, written.Bytes(), err)
	}
}
