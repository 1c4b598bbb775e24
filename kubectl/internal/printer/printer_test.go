package printer

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/kubectl/internal/golden"
)

func pod(name string, fields map[string]any) unstructured.Unstructured {
	content := map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": name, "namespace": "default", "labels": map[string]any{"app": "web"},
			"managedFields": []any{map[string]any{"manager": "somebody"}},
		},
	}
	maps.Copy(content, fields)
	return unstructured.Unstructured{Object: content}
}

func someList() *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}},
		Items: []unstructured.Unstructured{
			pod("b", map[string]any{"status": map[string]any{"phase": "Running", "restarts": int64(10)}}),
			pod("a", map[string]any{"status": map[string]any{"phase": "Pending", "restarts": int64(9)}}),
		},
	}
}

func TestPrinters(t *testing.T) {
	one := pod("a", map[string]any{"status": map[string]any{"phase": "Running", "text": "<&>\ntwo"}})
	cases := []struct {
		name    string
		options Options
		obj     runtime.Object
	}{
		{"json", Options{Output: "json"}, &one},
		{"json-list", Options{Output: "json"}, someList()},
		{"json-managed", Options{Output: "json", ShowManagedFields: true}, &one},
		{"yaml", Options{Output: "yaml"}, &one},
		{"name", Options{Output: "name"}, someList()},
		{"jsonpath", Options{Output: "jsonpath={.items[*].metadata.name}"}, someList()},
		{"jsonpath-as-json", Options{Output: "jsonpath-as-json={.items[*].status.phase}"}, someList()},
		{"jsonpath-missing", Options{Output: "jsonpath={.nothing.there}", AllowMissingKeys: true}, &one},
		{"template", Options{Output: "go-template", Template: `{{range .items}}{{.metadata.name}}:{{.status.phase}} {{end}}`}, someList()},
		{"columns", Options{Output: "custom-columns=NAME:.metadata.name,PHASE:{.status.phase},NONE:.x.y"}, someList()},
		{"columns-bare", Options{Output: "custom-columns=NAME:metadata.name", NoHeaders: true}, someList()},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := New(c.options)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := p.Print(&out, c.obj); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, c.name, out.String())
		})
	}
	if one.GetManagedFields() == nil {
		t.Error("printing changed the object it was given")
	}
}

func TestExists(t *testing.T) {
	object := map[string]any{"items": []any{"a", nil}, "at": int64(0), "none": nil}
	for _, test := range []struct {
		path []any
		want bool
	}{
		{[]any{"items", 0}, true}, {[]any{"items", object["at"]}, true}, {[]any{"items", 2}, false}, {[]any{"items", "a"}, false},
		{[]any{"none"}, false}, {[]any{"items", 1}, false}, {[]any{"at", 0}, false}, {[]any{nil}, false}, {nil, true},
	} {
		if exists(object, test.path...) != test.want {
			t.Errorf("%v: not %t", test.path, test.want)
		}
	}
	if exists(nil) {
		t.Error("nothing exists")
	}
}

// kubectl's output for --output-watch-events, without the managed fields.
func TestEvents(t *testing.T) {
	object := pod("a", nil)
	object.Object = map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a",
		"managedFields": []any{map[string]any{"manager": "m"}}}}
	event := &Event{Type: "MODIFIED", Object: &object}
	for output, want := range map[string]string{
		"json": `{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}}` + "\n",
		"yaml": "object:\n  apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\ntype: MODIFIED\n",
		"name": "pod/a\n",
		"jsonpath={.type} {.object.metadata.name}":        "MODIFIED a",
		"go-template={{.type}} {{.object.metadata.name}}": "MODIFIED a",
		`go-template={{exists . "object" "metadata" "managedFields"}}{{exists . "object" "status"}}{{exists . "type" "x"}}{{exists . 0}}`: "truefalsefalsefalse",
		`go-template={{exists . "object" "metadata" "name"}}{{exists .}}`:                                                                 "truetrue",
		"custom-columns=T:.type,NAME:.object.metadata.name":                                                                               "T          NAME\nMODIFIED   a\n",
	} {
		p, err := New(Options{Output: output})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := p.Print(&out, event); err != nil || out.String() != want {
			t.Errorf("-o %s: %v, %q, want %q", output, err, out.String(), want)
		}
	}
	if len(object.GetManagedFields()) == 0 {
		t.Error("printing changed the object it was given")
	}
}

func TestPrintersRefuse(t *testing.T) {
	for output, want := range map[string]string{
		"nonsense":                      `unable to match a printer suitable for the output format "nonsense"`,
		"jsonpath":                      "template format specified but no template given",
		"jsonpath={.a":                  "error parsing jsonpath",
		"go-template={{":                "error parsing template",
		"custom-columns=NAME":           "expected <header>:<json-path-expr>",
		"jsonpath-file=/does/not/exist": "no such file",
	} {
		if _, err := New(Options{Output: output}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-o %s: %v, want %q", output, err, want)
		}
	}
}

// A template that can't decode says so.
func TestTemplatesDecode(t *testing.T) {
	object := pod("a", nil)
	for text, want := range map[string]string{`{{base64decode "eA=="}}`: "", `{{base64decode "%"}}`: "base64 decode failed: illegal base64 data"} {
		p, err := New(Options{Output: "go-template=" + text})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Print(&bytes.Buffer{}, &object); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestYAMLSeparatesDocuments(t *testing.T) {
	p, err := New(Options{Output: "yaml"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, name := range []string{"a", "b"} {
		object := pod(name, nil)
		if err := p.Print(&out, &object); err != nil {
			t.Fatal(err)
		}
	}
	golden.Compare(t, "yaml-two", out.String())
}

func someTable(t *testing.T) *metav1.Table {
	t.Helper()
	table := &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Ready"}, {Name: "Restarts"}, {Name: "Node", Priority: 1}},
	}
	for _, row := range []struct {
		name  string
		cells []any
	}{
		{"web", []any{"web", "1/1", float64(0), "node-1"}},
		{"a-much-longer-name", []any{"a-much-longer-name", "0/1", "12 (3s ago)\nsecret \x1b[31m", nil}},
	} {
		object := pod(row.name, nil)
		raw, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: row.cells, Object: runtime.RawExtension{Raw: raw}})
	}
	return table
}

func TestTables(t *testing.T) {
	cases := map[string]*Table{
		"table":            {},
		"table-wide":       {Wide: true},
		"table-bare":       {NoHeaders: true},
		"table-everything": {WithEvent: true, WithNamespace: true, ShowLabels: true, LabelColumns: []string{"app", "example.org/tier"}, KindPrefix: "pod/"},
	}
	for name, table := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := table.Add(someTable(t), "ADDED"); err != nil {
				t.Fatal(err)
			}
			if err := table.Flush(&out); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name, out.String())
		})
	}
}

// The author of an object can't send control characters to a reader's terminal.
func TestControlCharacters(t *testing.T) {
	const hostile, want = "a\x1b[2J\rb\x07\u009b1mö\tc\nd", "a^[2J^b^^1mö\tc\nd"
	var out bytes.Buffer
	columns := &Columns{}
	columns.Add(hostile)
	if err := columns.Flush(&out); err != nil || out.String() != strings.ReplaceAll(want, "\t", "   ")+"\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	if n, err := VisibleTo(&out).Write([]byte(hostile)); err != nil || n != len(hostile) || out.String() != want {
		t.Errorf("%q, %d, %v", out.String(), n, err)
	}
}

// Rows of a watch come later, without headers, aligned with the first ones.
func TestTableKeepsItsColumns(t *testing.T) {
	var out bytes.Buffer
	table := &Table{}
	first := someTable(t)
	later := &metav1.Table{Rows: first.Rows[:1]}
	for _, each := range []*metav1.Table{first, later, {ColumnDefinitions: first.ColumnDefinitions, Rows: first.Rows[:1]}} {
		if err := table.Add(each, ""); err != nil {
			t.Fatal(err)
		}
		if err := table.Flush(&out); err != nil {
			t.Fatal(err)
		}
	}
	golden.Compare(t, "table-watch", out.String())
}

// Where there is nothing at first, the header is as wide as the events to come.
func TestTableOfEventsToCome(t *testing.T) {
	var out bytes.Buffer
	table := &Table{WithEvent: true}
	columns := []metav1.TableColumnDefinition{{Name: "Name"}}
	row := func(name string) metav1.TableRow {
		return metav1.TableRow{Cells: []any{name}, Object: runtime.RawExtension{Raw: []byte(`{}`)}}
	}
	for event, rows := range [][]metav1.TableRow{nil, {row("a")}, {row("b")}} {
		if err := table.Add(&metav1.Table{ColumnDefinitions: columns, Rows: rows}, []string{"", "ADDED", "MODIFIED"}[event]); err != nil {
			t.Fatal(err)
		}
		if err := table.Flush(&out); err != nil {
			t.Fatal(err)
		}
	}
	if want := "EVENT      NAME\nADDED      a\nMODIFIED   b\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// The tables of rollout history have less padding.
func TestPadding(t *testing.T) {
	var out bytes.Buffer
	columns := &Columns{Padding: 2}
	columns.Add("REVISION", "CHANGE-CAUSE")
	columns.Add("1", "<none>")
	if err := columns.Flush(&out); err != nil || out.String() != "REVISION  CHANGE-CAUSE\n1         <none>\n" {
		t.Errorf("%v: %q", err, out.String())
	}
}

// A text of several lines begins a new row, as with kubectl: those below know the widths of
// the rows above.
func TestTextsOfSeveralLines(t *testing.T) {
	var out bytes.Buffer
	columns := &Columns{}
	columns.Add("NAME", "TEXT", "KIND")
	columns.Add("first", "one line\nanother", "A")
	columns.Add("second-of-all", "short", "B")
	columns.Add("x", "y", "C")
	const want = `NAME            TEXT   KIND
first           one line
another         A
second-of-all   short   B
x               y       C
`
	if err := columns.Flush(&out); err != nil || out.String() != want {
		t.Errorf("%v:\n%s\nwant\n%s", err, out.String(), want)
	}
}

func TestSort(t *testing.T) {
	for path, want := range map[string]string{
		".metadata.name":     "a b",
		"{.status.restarts}": "a b",
		"status.phase":       "a b",
	} {
		list := someList()
		if err := SortItems(list, path); err != nil {
			t.Fatal(err)
		}
		if got := list.Items[0].GetName() + " " + list.Items[1].GetName(); got != want {
			t.Errorf("by %s: got %s, want %s", path, got, want)
		}
	}
	if err := SortItems(someList(), ".spec.none"); err == nil || !strings.Contains(err.Error(), "couldn't find any field") {
		t.Errorf("by a field that no object has: %v", err)
	}
	table := someTable(t)
	if err := SortTable(table, ".metadata.name"); err != nil {
		t.Fatal(err)
	}
	if table.Rows[0].Cells[0] != "a-much-longer-name" {
		t.Errorf("the table is not sorted: %v", table.Rows[0].Cells)
	}
}

// What has no name, or none yet, has the name that kubectl prints.
func TestNoName(t *testing.T) {
	unnamed := pod("", nil)
	plain := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}}
	for obj, want := range map[runtime.Object]string{&unnamed: "pod/<unknown> created\n", plain: "status/<unknown> created\n"} {
		var out bytes.Buffer
		if err := (&Name{Operation: "created"}).Print(&out, obj); err != nil || out.String() != want {
			t.Errorf("%q, %v, want %q", out.String(), err, want)
		}
	}
}

// A range is gone through anew for each object, as a watch prints them.
func TestJSONPathOfSeveralObjects(t *testing.T) {
	p, err := New(Options{Output: `jsonpath={.metadata.name}:{range .list[*]}{@}{","}{end}{"\n"}`})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, name := range []string{"a", "b"} {
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "list": []any{name, "x"}}}
		if err := p.Print(&out, object); err != nil {
			t.Fatal(err)
		}
	}
	if want := "a:a,x,\nb:b,x,\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

// Of two templates, neither is the one.
func TestTwoTemplates(t *testing.T) {
	for output, fits := range map[string]bool{"go-template={{.a}}": false, "jsonpath={.a}": false, "custom-columns=A:.a": false, "go-template": true,
		"yaml": true} {
		if _, err := New(Options{Output: output, Template: "{{.b}}"}); (err == nil) != fits {
			t.Errorf("-o %s with --template: %v", output, err)
		}
	}
}
