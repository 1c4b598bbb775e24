package manifest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	cases := []struct{ name, source, text, want string }{
		{"one YAML document", "f.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", "Pod/a@1"},
		{"many, some empty", "f.yaml",
			"# head\n---\n\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n--- # next\n---\n# c\nkind: Node\napiVersion: v1\nmetadata: {name: b}\n",
			"Pod/a@4 Node/b@10"},
		{"separator inside a block is kept", "f.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    ---\n    y\n", "ConfigMap/a@1"},
		{"JSON", "f.json",
			"\n{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}\n{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\"}}",
			"Pod/a@2 Pod/b@3"},
		{"YAML in flow form", "f.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: a}}", "Pod/a@1"},
		{"list", "f.yaml",
			"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n",
			"Pod/a@1 Pod/b@1"},
		{"list of one kind, as a server answers it", "f.json",
			`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"}},{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}]}`,
			"Pod/a@1 Node/b@1"},
		{"list of one kind with another one of no version", "f.json", `{"apiVersion":"v1","kind":"PodList","items":[{"kind":"Node","metadata":{"name":"b"}}]}`,
			"item 0 of the list: error parsing f.json: line 1: the object has no apiVersion"},
		{"list of one kind with a version of no kind", "f.json", `{"apiVersion":"v1","kind":"PodList","items":[{"apiVersion":"v1","metadata":{"name":"b"}}]}`,
			"item 0 of the list: error parsing f.json: line 1: Object 'Kind' is missing"},
		{"list of any kind", "f.yaml", "apiVersion: v1\nkind: List\nitems:\n- metadata: {name: a}\n",
			"item 0 of the list: error parsing f.yaml: line 1: Object 'Kind' is missing"},
		{"empty list", "f.yaml", "apiVersion: v1\nkind: PodList\nitems: []\n", ""},
		{"nothing", "f.yaml", "\n# nothing\n", ""},

		{"broken YAML", "f.yaml", "apiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n b: c\n", "error parsing f.yaml: line 8: "},
		{"broken JSON", "f.json", "{\n \"kind\": \"Pod\",\n oops\n}", "error parsing f.json: line 3: invalid character 'o'"},
		{"cut JSON", "f.json", "{\n \"kind\":", "error parsing f.json: line 2: unexpected EOF"},
		{"JSON with a comma too many, which kubectl takes", "f.json", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",},}", "Pod/a@1"},
		{"JSON with an error in its second object", "f.json", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}\n{\"apiVersion\":\"v1\",\"kind\":\"Pod\",}",
			"error parsing f.json: line 2: invalid character '}'"},
		{"JSON with an object behind one with a comma too many", "f.json", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",}\n{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}",
			"error parsing f.json: line 1: invalid character '}'"},
		{"cut behind an object", "f.json", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}\n{\"apiVersion\":", "error parsing f.json: line 2: unexpected EOF"},
		{"an object beside its separator", "f.yaml", "apiVersion: v1\nkind: Pod\n--- {apiVersion: v1, kind: Node}\n",
			"error parsing f.yaml: the document from line 1 on: YAML documents must be separated by a line with only ---"},
		{"the end of a document", "f.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n...\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\n...\n",
			"Pod/a@1 Pod/b@6"},
		{"a tab", "f.yaml", "kind: Pod\nmetadata:\n\tname: a\n",
			"error parsing f.yaml: line 3: found character that cannot start any token (it is a tab: YAML is indented by spaces)"},
		{"a template", "f.yaml", "apiVersion: v1\nkind: Node\n---\nkind: Pod\nmetadata:\n  name: {{ .Name }}\n", "error parsing f.yaml: the document from line 4 on: " +
			"invalid map key (line 6 has \"{{\", as a template does: apply what `helm template`, or the like, makes of it)"},
		{"twice the same key", "f.yaml", "apiVersion: v1\nkind: Pod\nkind: Node\n", `error parsing f.yaml: line 3: key "kind" already set in map`},
		{"twice the same key, JSON", "f.json", `{"apiVersion":"v1","kind":"Pod","kind":"Node"}`, `error parsing f.json: line 1: duplicate field "kind"`},
		{"no kind", "f.yaml", "---\n\nmetadata: {name: a}\n", "error parsing f.yaml: line 3: Object 'Kind' is missing"},
		{"no version", "f.yaml", "kind: Pod\n", "error parsing f.yaml: line 1: the object has no apiVersion"},
		{"a kustomization", "all/kustomization.yaml", "resources: [a.yaml]\n", "(a kustomization is applied by the name of its directory: -k all)"},
		{"not an object", "f.yaml", "- a\n- b\n", "error parsing f.yaml: line 1: the document is not an object"},
		{"list of texts", "f.yaml", "apiVersion: v1\nkind: List\nitems: [a]\n", "item 0 of the list is not an object"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			objects, err := Parse([]byte(c.text), c.source)
			var got []string
			for _, o := range objects {
				got = append(got, fmt.Sprintf("%s/%s@%d", o.GetKind(), o.GetName(), o.Line))
			}
			if err != nil {
				if !strings.HasPrefix(err.Error(), c.want) && !strings.Contains(err.Error(), c.want) || c.want == "" {
					t.Fatalf("got %v, want %q", err, c.want)
				}
				return
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", strings.Join(got, " "), c.want)
			}
		})
	}
}

// What is read to be sent is checked according to --validate.
func TestRules(t *testing.T) {
	twice, kindless := "apiVersion: v1\nkind: Pod\nkind: Node\nmetadata: {name: a}\n", "metadata: {name: a}\n"
	for _, c := range []struct{ validation, text, want, warned string }{
		{"Strict", twice, `error parsing f: line 3: strict decoding error: key "kind" already set in map`, ""},
		{"Warn", twice, "Node/a", `error parsing f: line 3: key "kind" already set in map`},
		{"Ignore", twice, "Node/a", ""},
		{"Ignore", `{"apiVersion":"v1","kind":"Pod","kind":"Node","metadata":{"name":"a"}}`, "Node/a", ""},
		{"Ignore", "a: [\n", "error parsing f: line 1: did not find expected node content", ""},
		{"Strict", kindless, "error parsing f: line 1: error validating data: [apiVersion not set, kind not set]", ""},
		{"Warn", "apiVersion: v1\n", "error parsing f: line 1: error validating data: kind not set", ""},
		{"Strict", "kind: Pod\n", "error parsing f: line 1: error validating data: apiVersion not set", ""},
		{"Ignore", kindless, "error parsing f: line 1: Object 'Kind' is missing", ""},
	} {
		warned := ""
		objects, err := Rules{Validation: c.validation, Warn: func(text string) { warned += text }}.Parse([]byte(c.text), "f")
		got := fmt.Sprint(err)
		if err == nil {
			got = objects[0].GetKind() + "/" + objects[0].GetName()
		}
		if got != c.want || warned != c.warned {
			t.Errorf("%s of %q: got %q and the warning %q, want %q and %q", c.validation, c.text, got, warned, c.want, c.warned)
		}
	}
}

func TestReadDirectories(t *testing.T) {
	dir := t.TempDir()
	write := func(name, pod string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: "+pod+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("b.yml", "b")
	write("a.yaml", "a")
	write("notes.txt", "not read")
	write("sub/c.yaml", "c")

	for _, c := range []struct {
		recursive bool
		want      string
	}{{false, "a b"}, {true, "a b c"}} {
		reader := &Reader{Recursive: c.recursive}
		objects, err := reader.Read(context.Background(), []string{dir})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range objects {
			names = append(names, o.GetName())
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("recursive %v: got %q, want %q", c.recursive, got, c.want)
		}
	}
	if _, err := (&Reader{}).Read(context.Background(), []string{filepath.Join(dir, "none")}); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a missing file: %v", err)
	}
}
