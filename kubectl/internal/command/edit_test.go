package command

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An edited object is printed as -o says, and as --template says, which is not how it
// looks in the editor. What is sent is checked as --validate says.
func TestEditPrints(t *testing.T) {
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nsed -i s/before/after/ \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBE_EDITOR", editor)
	t.Setenv("TMPDIR", t.TempDir()) // where a copy of what can't be printed stays
	patched := make(chan url.Values, 1)
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		value := "before"
		if r.Method == http.MethodPatch {
			patched <- r.URL.Query()
			value = "after"
		}
		fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"one","namespace":"default","labels":{"a":%q},
			"managedFields":[{"manager":"m","operation":"Update","fieldsType":"FieldsV1"}],
			"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"one\",\"labels\":{\"a\":\"before\"}}}"}}}`, value)
	})
	for _, c := range []struct{ args, want, not, validation string }{
		{"edit", "pod/one edited\n", "kind", "Strict"},
		{"edit -o json", `"a": "after"`, "managedFields", "Strict"},
		{"edit -o yaml --show-managed-fields", "managedFields:", "edited", "Strict"},
		{"edit --template={{.kind}}-{{.none}} --validate=warn", "Pod-<no value>", "edited", "Warn"},
		{"apply edit-last-applied", "pod/one edited\n", "kind", "Strict"},
		{"apply edit-last-applied -o json --validate=ignore", `"a": "after"`, "edited", "Ignore"},
	} {
		done := kctl(t, host, "", append(strings.Fields(c.args), "pod/one")...)
		done.want(t, 0)
		if out := done.out.String(); !strings.Contains(out, c.want) || strings.Contains(out, c.not) {
			t.Errorf("%s prints\n%s\nwant %q and not %q in it", c.args, out, c.want, c.not)
		}
		if got := (<-patched).Get("fieldValidation"); got != c.validation {
			t.Errorf("%s asks for the validation %q, want %q", c.args, got, c.validation)
		}
	}
	if c := kctl(t, host, "", "edit", "pod/one", "--template={{.none}}", "--allow-missing-template-keys=false"); c.code != 1 {
		t.Errorf("a missing key of a template: code %d", c.code)
	}
}
