package customresources

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"go.uber.org/zap"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/customresourcedefinition"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

// TestLongListsAreConvertedFewAtATime: those that need not be decoded need no place, and those
// that wait for a webhook take none from others.
func TestLongListsAreConvertedFewAtATime(t *testing.T) {
	full := make(registry.Conversions, 1)
	full <- struct{}{}
	options := Options{Registry: registry.Options{Conversions: full}}
	d := &definition{}
	old, now := &compiledVersion{group: "c.io", name: "v1", prefix: `{"apiVersion":"c.io/v1",`},
		&compiledVersion{group: "c.io", name: "v2", prefix: `{"apiVersion":"c.io/v2",`}
	versions := map[string]*compiledVersion{"v1": old, "v2": now}
	view := &convertedStore{converter: newConverter(d, versions, options), version: now}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	long := func(apiVersion string) []registry.Encoded {
		return []registry.Encoded{{JSON: []byte(`{"apiVersion":"` + apiVersion + `","kind":"C","text":"` + strings.Repeat("x", 1<<20) + `"}`), Revision: 7}}
	}
	toDecode := func() []registry.Encoded { // no encoder's order
		return []registry.Encoded{{JSON: []byte(`{"kind":"C","apiVersion":"c.io/v1","text":"` + strings.Repeat("x", 1<<20) + `"}`), Revision: 7}}
	}
	if _, err := view.convertAll(ended, toDecode()); !apierrors.IsTimeout(err) {
		t.Errorf("a long list: %v", err)
	}
	if _, err := view.convertAll(ended, long("c.io/v2")); err != nil {
		t.Errorf("nothing to convert: %v", err)
	}
	if got, err := view.convertAll(ended, long("c.io/v1")); err != nil || string(got[0].JSON) != string(long("c.io/v2")[0].JSON) {
		t.Errorf("nothing to decode: %v", err)
	}
	<-full
	got, err := view.convertAll(t.Context(), toDecode())
	if err != nil || string(got[0].JSON) != string(long("c.io/v2")[0].JSON) || got[0].Revision != 7 || len(full) != 0 {
		t.Errorf("with a place: %v, %d objects, %d places taken", err, len(got), len(full))
	}
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{}},
	}
	if newConverter(d, versions, options).bound == full {
		t.Error("a webhook's conversions take the places of others")
	}
}

// TestVersionsNameTheStoredOne: readers of the others get bytes of their own, and nothing is held for them.
func TestVersionsNameTheStoredOne(t *testing.T) {
	o := registry.Options{Clock: clock.RealClock{}, Logger: zap.NewNop(), Storage: etcdtest.Start(t)}
	d := New(Options{Store: registry.NewStore(customresourcedefinition.Strategy(clock.RealClock{}), o), Registry: o})
	t.Cleanup(func() { d.stop(); d.running.Wait() })
	schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: "knobs", Singular: "knob", Kind: "Knob", ListKind: "KnobList"}
	def := &definition{ObjectMeta: metav1.ObjectMeta{Name: "knobs.example.com"}}
	def.Spec.Group, def.Spec.Names, def.Status.AcceptedNames = "example.com", names, names
	for _, version := range []string{"v1", "v2"} {
		def.Spec.Versions = append(def.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: version == "v1", Schema: schema,
		})
	}
	text, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEntry(registry.Encoded{JSON: text}, def, nil)
	if err != nil {
		t.Fatal(err)
	}
	store := newInstanceStore(d, e.creations)
	for _, version := range []string{"v1", "v2"} {
		served, err := store.served(e, version)
		if err != nil {
			t.Fatal(err)
		}
		if info := served.Resource.Info(); info.Version != version || info.StoredAs.Version != "v1" {
			t.Errorf("%s is stored as %v, says %s", info.GVK(), info.StoredAs, version)
		}
	}
}
