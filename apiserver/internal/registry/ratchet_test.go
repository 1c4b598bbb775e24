package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/registry"
)

// TestErrorsOfBefore: an update is not refused for what was wrong before and stays as it was,
// wherever that is. Else all errors count, also those that read like earlier ones.
func TestErrorsOfBefore(t *testing.T) {
	calls := 0
	b := start(t, func(s *registry.Strategy[*corev1.Service]) {
		s.Update.Validate = func(_ context.Context, s, old *corev1.Service) field.ErrorList {
			calls++
			spec := field.NewPath("spec")
			var errs field.ErrorList
			if s.Spec.Type == "LoadBalancer" && s.Spec.LoadBalancerIP == "" {
				errs = append(errs, field.Required(spec.Child("loadBalancerIP"), ""))
			}
			for i, p := range s.Spec.Ports {
				at := spec.Child("ports").Index(i)
				if p.Name == "a" && s.Spec.SessionAffinity == "ClientIP" {
					errs = append(errs, field.Invalid(at.Child("name"), p.Name, "not with affinity"))
				}
				if p.NodePort == 0 && p.Protocol == "UDP" {
					errs = append(errs, field.Required(at.Child("nodePort"), ""))
				}
				if p.Port == 0 {
					errs = append(errs, field.Required(at.Child("port"), ""))
				}
				if strings.HasPrefix(p.Name, "bad") {
					errs = append(errs, field.Invalid(at.Child("name"), p.Name, "is bad"))
				}
				if strings.HasPrefix(p.Name, "odd") {
					errs = append(errs, field.Forbidden(at.Child("Name"), "no field has this name"))
				}
			}
			for key, value := range s.Spec.Selector {
				if strings.HasPrefix(value, "bad") {
					errs = append(errs, field.Invalid(spec.Child("selector").Key(key), field.OmitValueType{}, "is bad"))
				}
			}
			if s.Spec.Type != old.Spec.Type {
				errs = append(errs, field.Invalid(spec.Child("type"), s.Spec.Type, "field is immutable"))
			}
			if s.Spec.ExternalName == "locked" {
				errs = append(errs, field.Forbidden(field.NewPath(""), "may not be changed"))
			}
			if s.Spec.ExternalName == "nowhere" {
				errs = append(errs, field.Forbidden(field.NewPath("nowhere").Child("at", "all"), "may not be changed"))
			}
			return errs
		}
		s.Subresources["quiet"] = registry.UpdateStrategy[*corev1.Service]{Validate: s.Update.Validate}
	})
	const bad = `"ports":[{"name":"a","port":1},{"name":"bad","port":0}]`
	const lacking = `"ports":[{"name":"a","port":1,"protocol":"UDP"}]`
	for name, c := range map[string]struct {
		before, after string // of the spec
		want          string // the fields of the errors
	}{
		"nothing wrong":                {`"type":"ClusterIP"`, `"sessionAffinity":"None"`, ""},
		"all as before":                {bad, bad + `,"sessionAffinity":"None"`, ""},
		"mended":                       {bad, `"ports":[{"name":"a","port":1},{"name":"b","port":1}]`, ""},
		"half mended":                  {bad, `"ports":[{"name":"a","port":1},{"name":"bad","port":1}]`, ""},
		"another value":                {bad, `"ports":[{"name":"a","port":1},{"name":"bad2","port":0}]`, "spec.ports[1].name"},
		"one more of the same":         {bad, `"ports":[{"name":"bad","port":0},{"name":"bad","port":0}]`, "spec.ports[0].name spec.ports[0].port"},
		"another element has the same": {bad, `"ports":[{"name":"bad","port":0},{"name":"b","port":1}]`, "spec.ports[0].name spec.ports[0].port"},
		"another index": {bad, `"ports":[{"name":"a","port":1},{"name":"b","port":1},{"name":"bad","port":0}]`,
			"spec.ports[2].name spec.ports[2].port"},
		"a value that is not shown":     {`"selector":{"a.b/c":"bad"}`, `"selector":{"a.b/c":"bad2"}`, "spec.selector[a.b/c]"},
		"an entry as before":            {`"selector":{"a.b/c":"bad"}`, `"selector":{"a.b/c":"bad","d":"e"}`, ""},
		"an entry of another key":       {`"selector":{"a":"bad"}`, `"selector":{"b":"bad"}`, "spec.selector[b]"},
		"an immutable field":            {bad, bad + `,"type":"NodePort"`, "spec.type"},
		"at odds with another field":    {bad, bad + `,"sessionAffinity":"ClientIP"`, "spec.ports[0].name"},
		"a missing field":               {`"type":"LoadBalancer"`, `"type":"LoadBalancer","sessionAffinity":"None"`, ""},
		"a missing field of an element": {lacking, lacking + `,"sessionAffinity":"None"`, ""},
		"another element lacks it":      {lacking, `"ports":[{"name":"b","port":1,"protocol":"UDP"}]`, "spec.ports[0].nodePort"},
		"the whole object, as before":   {`"externalName":"locked"`, `"externalName":"locked"`, ""},
		"a path of no field":            {`"ports":[{"name":"odd","port":1}]`, `"ports":[{"name":"odd","port":1}],"sessionAffinity":"None"`, ""},
		"a path of no field, changed":   {`"ports":[{"name":"odd","port":1}]`, `"ports":[{"name":"odd2","port":1}]`, "spec.ports[0].Name"},
		"the whole object":              {`"externalName":"locked"`, `"externalName":"locked","sessionAffinity":"None"`, "[]"},
		"a path outside the object":     {`"externalName":"nowhere"`, `"externalName":"nowhere","sessionAffinity":"None"`, "nowhere.at.all"},
	} {
		for _, way := range []string{"", "quiet"} {
			t.Run(name+"/"+way, func(t *testing.T) {
				id := strings.NewReplacer(" ", "-", ",", "").Replace(name) + way
				stored := `{"apiVersion":"v1","kind":"Service","metadata":{"name":"` + id + `","namespace":"ns","uid":"u"},"spec":{` + c.before + `}}`
				if _, err := b.storage.Create(t.Context(), "/registry/services/specs/ns/"+id, []byte(stored), 0); err != nil {
					t.Fatal(err)
				}
				calls = 0
				_, err := b.UpdateTyped(t.Context(), "ns", id, way, func(s *corev1.Service) error {
					s.Labels = map[string]string{"new": ""}
					s.Spec = corev1.ServiceSpec{}
					return json.Unmarshal([]byte(`{`+c.after+`}`), &s.Spec)
				})
				var said []string
				if status := apierrors.APIStatus(nil); errors.As(err, &status) {
					for _, cause := range status.Status().Details.Causes {
						said = append(said, cause.Field)
					}
				}
				slices.Sort(said)
				if got := strings.Join(said, " "); got != c.want || (err != nil) != (c.want != "") {
					t.Errorf("refused for %q, want %q: %v", got, c.want, err)
				}
				if strings.HasPrefix(name, "nothing") && calls != 1 {
					t.Errorf("an update without errors was validated %d times", calls)
				}
			})
		}
	}
}
