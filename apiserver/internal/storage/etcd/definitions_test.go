package etcd

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestDefinitionsOfUpstream: a definition as kube-apiserver 1.37 stores it has its schema, subresources and
// columns when it is read. Those in v1 stay as they are, and so does what is not a definition.
func TestDefinitionsOfUpstream(t *testing.T) {
	const common = `"validation":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer","maximum":5}}}}}},
		"subresources":{"status":{},"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}},"additionalPrinterColumns":[{"name":"N","type":"integer","JSONPath":".spec.n"}]`
	stored := func(spec string) string {
		return `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{"name":"widgets.up.test","uid":"u","generation":1,"labels":{"a":"b"}},
			"spec":{"group":"up.test","version":"v1","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"scope":"Namespaced",` + spec + `},
			"status":{"conditions":[{"type":"Established","status":"True"}],"acceptedNames":{"plural":"widgets","kind":"Widget"},"storedVersions":["v1"]}}`
	}
	read := func(key, value string) (_ apiextensionsv1.CustomResourceDefinition, stale bool) {
		t.Helper()
		text, stale, err := newValues(nil, nil).decode(t.Context(), &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value)})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(key, "/registry/apiextensions.k8s.io/") && string(text) != value {
			t.Errorf("%s was changed into %s", key, text)
		}
		var d apiextensionsv1.CustomResourceDefinition
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		return d, stale
	}
	const key = "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.up.test"
	for name, spec := range map[string]string{
		"one version":  common + `,"versions":[{"name":"v1","served":true,"storage":true}],"conversion":{"strategy":"None"},"preserveUnknownFields":false`,
		"two versions": common + `,"versions":[{"name":"v1","served":true,"storage":true},{"name":"v2","served":true,"storage":false}],"preserveUnknownFields":false`,
		"no versions":  common + `,"preserveUnknownFields":false`,
	} {
		d, stale := read(key, stored(spec))
		if !stale || d.APIVersion != "apiextensions.k8s.io/v1" || d.Kind != "CustomResourceDefinition" || d.UID != "u" || d.Labels["a"] != "b" ||
			len(d.Status.Conditions) != 1 || d.Spec.PreserveUnknownFields || len(d.Spec.Versions) == 0 {
			t.Errorf("%s: read, to be written again %t, as %+v", name, stale, d)
		}
		for _, v := range d.Spec.Versions {
			schema := v.Schema.OpenAPIV3Schema.Properties["spec"].Properties["n"]
			if schema.Maximum == nil || v.Subresources.Status == nil || v.Subresources.Scale.SpecReplicasPath != ".spec.n" ||
				v.AdditionalPrinterColumns[0].JSONPath != ".spec.n" {
				t.Errorf("%s: version %+v", name, v)
			}
		}
		text, _ := json.Marshal(d)
		if again, stale := read(key, string(text)); stale || !reflect.DeepEqual(again, d) {
			t.Errorf("%s: read in v1 as %+v", name, again)
		}
	}
	hook, _ := read(key, stored(common+`,"versions":[{"name":"v1","served":true,"storage":true}],"preserveUnknownFields":false,
		"conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"https://c.test"},"conversionReviewVersions":["v1"]}`))
	if url := hook.Spec.Conversion.Webhook.ClientConfig.URL; *url != "https://c.test" {
		t.Errorf("converted by %s", *url)
	}
	if _, stale := read("/registry/up.test/widgets/default/a", stored(common)); stale {
		t.Error("another object is to be written again")
	}
}
