package objects

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/config"
	"kctl/proto/rest"
)

// kindCase is an entry of testdata/kinds.yaml: how upstream's server defaults a
// manifest, and how it refuses variations of it.
type kindCase struct {
	Path      string         `json:"path"`
	Manifest  map[string]any `json:"manifest"`
	Completed map[string]any `json:"completed"`
	Parts     []string       `json:"parts"`
	// Refused are manifests that are refused, Kept are later changes that have no
	// effect.
	Refused []refusal `json:"refused"`
	Kept    []refusal `json:"kept"`
	// Warned are manifests that are accepted with warnings.
	Warned []warned `json:"warned"`
}

type warned struct {
	With map[string]any `json:"with"` // a merge patch
	Says []string       `json:"says"`
}

type refusal struct {
	With map[string]any `json:"with"` // a merge patch
	Says string         `json:"says"`
}

func (r refusal) check(t *testing.T, err error) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Message != r.Says {
		t.Errorf("%v:\n     %v\nwant %v", r.With, err, r.Says)
	}
}

// TestKinds: objects of every kind are defaulted and refused as by upstream's
// server, word for word.
func TestKinds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "kinds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []kindCase
	if err := yaml.UnmarshalStrict(text, &cases); err != nil {
		t.Fatal(err)
	}
	// With priority and fairness on, the server itself writes to flow schemas.
	c := start(t, func(o *config.Options) {
		o.EnablePriorityAndFairness = false
		o.Controllers = []string{"*", "-service-cidr-controller", "-persistentvolume-binder-controller"} // they would change what is compared
	})
	root := c.Root()
	for _, k := range cases {
		t.Run(k.Manifest["kind"].(string), func(t *testing.T) {
			for _, refused := range k.Refused {
				refused.check(t, root.Do(t.Context(), http.MethodPost, k.Path, merged(t, k.Manifest, refused.With), nil))
			}
			for _, w := range k.Warned {
				var said []string
				c.Must(root.Do(t.Context(), http.MethodPost, k.Path, merged(t, k.Manifest, w.With), nil,
					rest.Query("dryRun", "All"), rest.OnWarning(func(text string) { said = append(said, text) })))
				if slices.Sort(said); !slices.Equal(said, w.Says) {
					t.Errorf("%v:\n     %q\nwant %q", w.With, said, w.Says)
				}
			}
			made, read := map[string]any{}, map[string]any{}
			c.Must(root.Do(t.Context(), http.MethodPost, k.Path, k.Manifest, &made))
			object := k.Path + "/first"
			c.Must(root.Do(t.Context(), http.MethodGet, object, nil, &read))
			if !equality.Semantic.DeepEqual(made, read) {
				t.Errorf("made  %v\nread %v", made, read)
			}
			if missing := lacking(read, k.Completed, ""); len(missing) > 0 {
				t.Errorf("not as upstream completes it:\n%s", strings.Join(missing, "\n"))
			}
			for _, kept := range k.Kept {
				kept.check(t, root.Do(t.Context(), http.MethodPatch, object, kept.With, nil, rest.ContentType(string(types.MergePatchType))))
			}
			for _, part := range k.Parts {
				shown := map[string]any{}
				c.Must(root.Do(t.Context(), http.MethodGet, object+"/"+part, nil, &shown))
				c.Must(root.Do(t.Context(), http.MethodPut, object+"/"+part, shown, nil))
			}
			c.Must(root.Do(t.Context(), http.MethodDelete, object, nil, nil, rest.Query("propagationPolicy", "Background")))
		})
	}
}

func merged(t *testing.T, manifest, patch map[string]any) map[string]any {
	t.Helper()
	before, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	change, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	after, err := jsonpatch.MergePatch(before, change)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(after, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// lacking lists the fields of want that differ in got. Lists are compared as a
// whole.
func lacking(got, want map[string]any, at string) []string {
	var out []string
	for key, value := range want {
		if inner, ok := value.(map[string]any); ok {
			of, _ := got[key].(map[string]any)
			out = append(out, lacking(of, inner, at+"."+key)...)
			continue
		}
		if !equality.Semantic.DeepEqual(got[key], value) {
			have, _ := json.Marshal(got[key])
			wanted, _ := json.Marshal(value)
			out = append(out, at+"."+key+": "+string(have)+", want "+string(wanted))
		}
	}
	return out
}
