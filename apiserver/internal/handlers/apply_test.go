package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

const (
	applyType = "application/apply-patch+yaml"
	mergeType = "application/merge-patch+json"
)

// applyMap applies a config map with data given in YAML.
func (s *server) applyMap(name, query, data string) answer {
	s.t.Helper()
	body := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: " + data + "\n"
	return s.do("PATCH", collection+"/"+name+"?"+query, body, "Content-Type", applyType)
}

// owners writes the entries of managedFields: manager and fields.
func owners(o metav1.Object) string {
	var out []string
	for _, e := range o.GetManagedFields() {
		text := e.Manager + " " + string(e.Operation)
		if e.Subresource != "" {
			text += " " + e.Subresource
		}
		out = append(out, text+" "+string(e.FieldsV1.Raw))
	}
	return strings.Join(out, "\n")
}

func (a answer) wantOwners(t *testing.T, code int, want ...string) *core.ConfigMap {
	t.Helper()
	var got core.ConfigMap
	a.into(t, &got)
	if a.code != code || owners(&got) != strings.Join(want, "\n") {
		t.Errorf("got %d %s\n%s\nwant %d\n%s", a.code, a.body, owners(&got), code, strings.Join(want, "\n"))
	}
	return &got
}

func TestApply(t *testing.T) {
	s := start(t)
	first := s.applyMap("a", "fieldManager=one", "{x: '1', w: '1'}").
		wantOwners(t, 201, `one Apply {"f:data":{"f:w":{},"f:x":{}}}`)
	again := s.applyMap("a", "fieldManager=one", "{x: '1', w: '1'}").
		wantOwners(t, 200, `one Apply {"f:data":{"f:w":{},"f:x":{}}}`)
	if again.ResourceVersion != first.ResourceVersion {
		t.Errorf("applying the same again wrote: %s, then %s", first.ResourceVersion, again.ResourceVersion)
	}

	conflict := s.applyMap("a", "fieldManager=two", "{x: '2', z: '2'}")
	conflict.wantStatus(t, 409, metav1.StatusReasonConflict, `Apply failed with 1 conflict: conflict with "one": .data.x`)
	var status metav1.Status
	conflict.into(t, &status)
	if c := status.Details.Causes; len(c) != 1 || c[0].Type != metav1.CauseTypeFieldManagerConflict || c[0].Field != ".data.x" ||
		c[0].Message != `conflict with "one"` {
		t.Errorf("causes %+v", c)
	}
	s.applyMap("a", "fieldManager=two&force=true&dryRun=All", "{x: '2', z: '2'}").
		wantOwners(t, 200, `one Apply {"f:data":{"f:w":{}}}`, `two Apply {"f:data":{"f:x":{},"f:z":{}}}`)
	s.applyMap("a", "fieldManager=two&force=true", "{x: '2', z: '2'}").
		wantOwners(t, 200, `one Apply {"f:data":{"f:w":{}}}`, `two Apply {"f:data":{"f:x":{},"f:z":{}}}`)
	// No other manager wants z: it is removed when its owner stops applying it.
	got := s.applyMap("a", "fieldManager=two", "{x: '2'}").
		wantOwners(t, 200, `one Apply {"f:data":{"f:w":{}}}`, `two Apply {"f:data":{"f:x":{}}}`)
	if len(got.Data) != 2 || got.Data["x"] != "2" || got.Data["w"] != "1" {
		t.Errorf("data %v", got.Data)
	}
	// A field that several managers apply with the same value is shared, until one
	// changes it.
	s.applyMap("a", "fieldManager=one", "{x: '2', w: '1'}").
		wantOwners(t, 200, `one Apply {"f:data":{"f:w":{},"f:x":{}}}`, `two Apply {"f:data":{"f:x":{}}}`)
	s.do("PATCH", collection+"/a", `{"data":{"x":"3"}}`, "Content-Type", mergeType, "User-Agent", "hand/1.0 (x)").
		wantOwners(t, 200, `one Apply {"f:data":{"f:w":{}}}`, `hand Update {"f:data":{"f:x":{}}}`)
	// An empty entry clears the managedFields; a later update finds none.
	s.do("PATCH", collection+"/a", `{"metadata":{"managedFields":[{}]}}`, "Content-Type", mergeType).wantOwners(t, 200)
	s.do("PATCH", collection+"/a?fieldManager=x", `{"data":{"x":"4"}}`, "Content-Type", mergeType).wantOwners(t, 200)
	s.do("PATCH", collection+"/a", `{"metadata":{"managedFields":[]}}`, "Content-Type", mergeType).wantOwners(t, 200)
	s.applyMap("a", "fieldManager=one", "{w: '1'}").
		wantOwners(t, 200, `one Apply {"f:data":{"f:w":{}}}`, `before-first-apply Update {"f:data":{".":{},"f:w":{},"f:x":{}}}`)
}

func TestApplyRefusals(t *testing.T) {
	s := start(t)
	s.create("a", "1")
	head := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for _, tc := range []struct {
		name, path, body string
		code             int
		reason           metav1.StatusReason
		message          string
	}{
		{"nobody", "/a", head, 422, metav1.StatusReasonInvalid, "fieldManager: Required value: is required for apply patch"},
		{"no kind", "/a?fieldManager=m", "apiVersion: v1", 400, metav1.StatusReasonBadRequest, "invalid object type: /v1, Kind="},
		{"another kind", "/a?fieldManager=m", "apiVersion: v1\nkind: Secret", 400, metav1.StatusReasonBadRequest, "invalid object type: /v1, Kind=Secret"},
		{"nothing", "/a?fieldManager=m", "", 400, metav1.StatusReasonBadRequest, "invalid object type: /, Kind="},
		{"a list", "/a?fieldManager=m", "[]", 400, metav1.StatusReasonBadRequest, "error decoding patch: error unmarshaling JSON"},
		{"no YAML", "/a?fieldManager=m", "{{", 400, metav1.StatusReasonBadRequest, "error decoding patch: error converting YAML to JSON"},
		{"a key twice", "/a?fieldManager=m&fieldValidation=Strict", head + "data: {z: '1', z: '2'}", 400, metav1.StatusReasonBadRequest,
			"error strict decoding patch"},
		{"another name", "/b?fieldManager=m", head, 400, metav1.StatusReasonBadRequest, "the name of the object (a) does not match the name on the URL (b)"},
		{"managedFields", "/a?fieldManager=m", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, managedFields: [{}]}", 400, metav1.StatusReasonBadRequest,
			"metadata.managedFields must be nil"},
		{"an old version", "/a?fieldManager=m", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, resourceVersion: '1'}", 409, metav1.StatusReasonConflict,
			"has been modified"},
		{"a version that is none", "/b?fieldManager=m", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, resourceVersion: x}", 500, metav1.StatusReasonUnknown,
			`strconv.ParseUint: parsing "x": invalid syntax`},
		{"one that is gone", "/b?fieldManager=m", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, uid: u}", 409, metav1.StatusReasonConflict,
			"uid mismatch: the provided object specified uid u, and no existing object was found"},
		{"an unknown field", "/a?fieldManager=m", head + "nonsense: 1", 500, metav1.StatusReasonUnknown, ".nonsense: field not declared in schema"},
		{"a wrong type", "/a?fieldManager=m", head + "data: {x: 1}", 500, metav1.StatusReasonUnknown, ".data.x: expected string"},
		{"the status of nothing", "/none/status?fieldManager=m", head, 404, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := s.do("PATCH", collection+tc.path, tc.body, "Content-Type", applyType)
			if tc.reason == "" {
				if a.code != tc.code {
					t.Errorf("%d %s", a.code, a.body)
				}
				return
			}
			a.wantStatus(t, tc.code, tc.reason, tc.message)
		})
	}
	if a := s.applyMap("a", "fieldManager=m", "{z: '1', z: '2'}"); a.code != http.StatusOK ||
		!strings.Contains(a.header.Get("Warning"), `key "z" already set in map`) {
		t.Errorf("a doubled key: %d, warning %q", a.code, a.header.Get("Warning"))
	}
}
