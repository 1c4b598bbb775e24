package customresources

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/registry"
)

// TestLongListsAreConvertedFewAtATime: those that need not be decoded need no place, and those
// that wait for a webhook take none from others.
func TestLongListsAreConvertedFewAtATime(t *testing.T) {
	full := make(registry.Conversions, 1)
	full <- struct{}{}
	options := Options{Registry: registry.Options{Conversions: full}}
	d := &definition{}
	old, now := &compiledVersion{group: "c.io", name: "v1", prefix: `{"apiVersion":"c.io/v1",`}, &compiledVersion{group: "c.io", name: "v2", prefix: `{"apiVersion":"c.io/v2",`}
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
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{}}}
	if newConverter(d, versions, options).bound == full {
		t.Error("a webhook's conversions take the places of others")
	}
}
