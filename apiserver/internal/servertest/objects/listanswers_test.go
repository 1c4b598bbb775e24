package objects

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestListAnswers: bad requests for collections are refused as by
// kube-apiserver, with all errors, in its order.
func TestListAnswers(t *testing.T) {
	t.Parallel()
	c := start(t)
	const maps, old = "/api/v1/namespaces/default/configmaps?", "/api/v1/componentstatuses"
	for _, test := range []struct {
		method, path string
		code         int
		says         string // a part of the answer
	}{
		{"GET", maps + "resourceVersion=abc", 400,
			`invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax`},
		{"GET", maps + "resourceVersion=abc&resourceVersionMatch=Foo", 422,
			`ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: \"Foo\": supported values: \"Exact\", \"NotOlderThan\", \"\"`},
		{"GET", maps + "resourceVersionMatch=Foo", 422,
			`[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided, resourceVersionMatch: Unsupported value`},
		{"GET", maps + "resourceVersion=0&resourceVersionMatch=Exact", 422,
			`resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"`},
		{"GET", maps + "resourceVersionMatch=Exact&continue=x", 422,
			`[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided, resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided]`},
		{"GET", maps + "resourceVersion=1&continue=x", 400, "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"},
		{"GET", maps + "resourceVersionMatch=Foo&fieldSelector=spec.x=y", 422, "resourceVersionMatch is forbidden unless resourceVersion is provided"},
		{"GET", maps + "sendInitialEvents=true&fieldSelector=spec.x=y", 422, "sendInitialEvents is forbidden for list"},
		{"GET", maps + "watch=1&resourceVersionMatch=Exact&fieldSelector=spec.x=y", 422,
			"resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"},
		{"GET", maps + "resourceVersionMatch=NotOlderThan&sendInitialEvents=true", 422,
			`[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided, sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list]`},
		{"GET", maps + "watch=1&resourceVersion=abc&resourceVersionMatch=Exact", 422,
			`[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided, resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]`},
		{"GET", maps + "watch=1&timeoutSeconds=-1", 200, ""},
		{"GET", maps + "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999999", 200,
			`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 99999999`},
		{"GET", "/api/v1/pods?fieldSelector=status.podIPs=10.0.0.1", 200, `"items":[]`},
		{"GET", "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.pool.name=p", 200, `"items":[]`},
		{"GET", "/apis/storage.k8s.io/v1/storageclasses?fieldSelector=metadata.namespace=x", 200, `"items":[]`},
		{"GET", "/apis/apps/v1/replicasets?fieldSelector=status.replicas=1", 400,
			`\"status.replicas\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"`},
		{"GET", "/apis/storage.k8s.io/v1/volumeattachments?fieldSelector=spec.nodeName=n", 400, `\"spec.nodeName\" is not a known field selector`},
		{"GET", "/apis/storage.k8s.io/v1/volumeattachments?fieldSelector=metadata.namespace=n", 200, `"items":[]`},
		{"GET", "/apis/batch/v1/jobs?watch=1&fieldSelector=spec.x=y", 400, `"message":"field label \"spec.x\" not supported for Job"`},
		{"DELETE", "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.x=y", 400,
			`"message":"field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.x"`},
		{"GET", "/api/v1/services?fieldSelector=spec.x=y", 400, `"message":"field label not supported: spec.x"`},
		{"GET", "/apis/events.k8s.io/v1/events?fieldSelector=regarding.kind=Pod,reportingController=x", 200, `"items":[]`},
		{"GET", "/apis/events.k8s.io/v1/events?fieldSelector=involvedObject.kind=Pod", 400,
			`"message":"field label not supported: involvedObject.kind"`},
		{"GET", "/apis/events.k8s.io/v1/events?watch=1&timeoutSeconds=1&fieldSelector=source=x", 400, `"message":"field label not supported: source"`},
		{"DELETE", "/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=reportingComponent=x", 400,
			`"message":"field label not supported: reportingComponent"`},
		{"GET", "/api/v1/componentstatuses/none", 404, `"message":"componentstatus \"none\" not found"`},
		{"GET", "/api/v1/componentstatuses?labelSelector=a=b", 200, `"items":[]`},
		{"GET", "/api/v1/componentstatuses?labelSelector=!a", 200, `"name":"etcd-0"`},
		{"GET", "/api/v1/componentstatuses?fieldSelector=metadata.name=scheduler", 200, `"items":[]`},
		{"GET", "/api/v1/componentstatuses?fieldSelector=metadata.name!=scheduler", 200, `"name":"etcd-0"`},
		{"GET", "/api/v1/componentstatuses?fieldSelector=spec.x=y", 400, `\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"`},
		{"PUT", "/api/v1/componentstatuses/etcd-0", 405, ""}, // without a warning

		{"POST", "/apis/apps/v1/namespaces/default/controllerrevisions", 201, ""},
		{"DELETE", "/apis/apps/v1/namespaces/default/controllerrevisions/r?uid=other", 409, `the UID in the precondition (other) does not match the UID in record`},
		{"DELETE", "/apis/apps/v1/namespaces/default/controllerrevisions/r?resourceVersion=1", 409,
			`the ResourceVersion in the precondition (1) does not match the ResourceVersion in record`},
	} {
		body := ""
		if test.method == "POST" {
			body = `{"metadata":{"name":"r"},"revision":1,"data":{}}`
		}
		answer, text := c.Ask(test.method, test.path, http.Header{"Content-Type": {putIt}}, []byte(body))
		if answer.StatusCode != test.code || !strings.Contains(string(text), test.says) {
			t.Errorf("%s %s: %d %.600s", test.method, test.path, answer.StatusCode, text)
		}
		if warned := answer.Header.Get("Warning") != ""; warned != (strings.HasPrefix(test.path, old) && test.code != 405) {
			t.Errorf("%s %s: warning %q", test.method, test.path, answer.Header.Get("Warning"))
		}
	}
	t.Run("columns", func(t *testing.T) { sameColumns(t, c) })
	t.Run("bookmarks", func(t *testing.T) { withoutDefaults(t, c) })
	t.Run("rows of flow schemas", func(t *testing.T) { inMatchingOrder(t, c) })
}

// withoutDefaults: a bookmark in protobuf, or of a kind that is shown as another one, has a revision,
// and no defaults of an object.
func withoutDefaults(t *testing.T, c *cluster) {
	for _, b := range []struct{ path, media, text string }{
		{"/apis/apps/v1/deployments", "application/vnd.kubernetes.protobuf", "RollingUpdate"},
		{"/apis/autoscaling/v1/horizontalpodautoscalers", "application/json", "minReplicas"},
	} {
		_, text := c.Ask(http.MethodGet, b.path+"?watch=1&allowWatchBookmarks=1&timeoutSeconds=1", http.Header{"Accept": {b.media}}, nil)
		if got := string(text); !strings.Contains(got, "BOOKMARK") || strings.Contains(got, b.text) {
			t.Errorf("%q", got)
		}
	}
}

// inMatchingOrder: tables have flow schemas in the order in which they are matched.
func inMatchingOrder(t *testing.T, c *cluster) {
	asTable := http.Header{"Accept": {"application/json;as=Table;v=v1;g=meta.k8s.io"}}
	_, text := c.Ask(http.MethodGet, "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", asTable, nil)
	var table metav1.Table
	if err := json.Unmarshal(text, &table); err != nil || len(table.Rows) < 3 {
		t.Fatalf("%v: %.300s", err, text)
	}
	if first, last := table.Rows[0].Cells[0], table.Rows[len(table.Rows)-1].Cells[0]; first != "exempt" || last != "catch-all" {
		t.Errorf("from %v to %v", first, last)
	}
}

//go:embed testdata/columns.txt
var upstreamsColumns string

// sameColumns: tables have kube-apiserver's columns and descriptions.
// testdata/columns.txt has its answers: a path, and below it the name, type,
// format, priority and description of each column.
func sameColumns(t *testing.T, c *cluster) {
	metadata := metav1.ObjectMeta{}.SwaggerDoc()
	for _, block := range strings.Split("\n"+strings.TrimSpace(upstreamsColumns), "\n/")[1:] {
		path, lines, _ := strings.Cut("/"+block, "\n")
		_, text := c.Ask(http.MethodGet, path+"?limit=1", http.Header{"Accept": {"application/json;as=Table;v=v1;g=meta.k8s.io"}}, nil)
		var table metav1.Table
		if err := json.Unmarshal(text, &table); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		var got []string
		for _, column := range table.ColumnDefinitions {
			switch column.Description {
			case metadata["name"]:
				column.Description = "NAME"
			case metadata["creationTimestamp"]:
				column.Description = "CREATED"
			}
			got = append(got, fmt.Sprintf("\t%s\t%s\t%s\t%d\t%s", column.Name, column.Type, column.Format, column.Priority, strconv.Quote(column.Description)))
		}
		if strings.Join(got, "\n") != lines {
			t.Errorf("%s has columns\n%s\nwant\n%s", path, strings.Join(got, "\n"), lines)
		}
	}
}

// TestScaleAnswers: Scales of custom resources are written without a version
// and printed like others; deleting jobs without a word about their pods causes
// a warning.
func TestScaleAnswers(t *testing.T) {
	t.Parallel()
	c := start(t)
	const things = "/apis/scale.example/v1/namespaces/default/things"
	ask := func(method, path, accept, body string) (*http.Response, string) {
		answer, text := c.Ask(method, path, http.Header{"Content-Type": {putIt}, "Accept": {accept}}, []byte(body))
		return answer, string(text)
	}
	_, text := ask(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", putIt,
		`{"metadata":{"name":"things.scale.example"},"spec":{"group":"scale.example","scope":"Namespaced",`+
			`"names":{"kind":"Thing","plural":"things"},"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},`+
			`"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`)
	c.Until("things are served: "+text, func(context.Context) bool {
		answer, _ := ask(http.MethodPost, things, putIt, `{"apiVersion":"scale.example/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"replicas":1}}`)
		return answer.StatusCode == http.StatusCreated || answer.StatusCode == http.StatusConflict
	})
	if answer, text := ask(http.MethodPut, things+"/t/scale", putIt, `{"metadata":{"name":"t"},"spec":{"replicas":2}}`); answer.StatusCode != http.StatusOK {
		t.Errorf("a scale without a version: %d %s", answer.StatusCode, text)
	}
	if _, text := ask(http.MethodGet, things+"/t/scale", "application/json;as=Table;v=v1;g=meta.k8s.io", ""); !strings.Contains(text, `"cells":["t",2,0,`) {
		t.Errorf("a scale's table: %s", text)
	}
	answer, refused := c.Ask(http.MethodPatch, things+"/t/scale", http.Header{"Content-Type": {byKeys}}, []byte(`{}`))
	const accepted = "accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
	if answer.StatusCode != http.StatusUnsupportedMediaType || !strings.Contains(string(refused), accepted) {
		t.Errorf("a strategic merge patch of a custom resource's scale: %d %s", answer.StatusCode, refused)
	}
	answer, text = ask(http.MethodPost, "/apis/batch/v1/namespaces/default/jobs", putIt,
		`{"metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`)
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("a job: %s", text)
	}
	for path, want := range map[string]string{
		"j?dryRun=All": "child pods are preserved by default when jobs are deleted", "j?dryRun=All&propagationPolicy=Background": "",
	} {
		answer, _ := ask(http.MethodDelete, "/apis/batch/v1/namespaces/default/jobs/"+path, putIt, "")
		if got := answer.Header.Get("Warning"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s warns %q", path, got)
		}
	}
}

// TestAdminAccess: claims with admin access to devices can be created only in
// namespaces labelled for it.
func TestAdminAccess(t *testing.T) {
	t.Parallel()
	c := start(t)
	const group = "/apis/resource.k8s.io/v1/namespaces/"
	ask := func(method, path, media, body string) (int, string) {
		answer, text := c.Ask(method, path, http.Header{"Content-Type": {media}}, []byte(body))
		return answer.StatusCode, string(text)
	}
	const asks = `"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","adminAccess":true}}]}`
	c.Namespace("admins")
	const labelled = `{"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}}`
	if code, text := ask(http.MethodPatch, "/api/v1/namespaces/admins", merging, labelled); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	for path, body := range map[string]string{
		"/resourceclaims":         `{"metadata":{"name":"a"},"spec":{` + asks + `}}`,
		"/resourceclaimtemplates": `{"metadata":{"name":"a"},"spec":{"spec":{` + asks + `}}}`,
	} {
		code, text := ask(http.MethodPost, group+"default"+path, putIt, body)
		const refusal = "devices.requests[0].adminAccess: Forbidden: admin access to devices requires the " +
			"`resource.kubernetes.io/admin-access: true` label on the containing namespace"
		if code != http.StatusUnprocessableEntity || !strings.Contains(text, refusal) {
			t.Errorf("%s: %d %s", path, code, text)
		}
		c.Until("the label counts", func(context.Context) bool {
			code, _ := ask(http.MethodPost, group+"admins"+path, putIt, body)
			return code == http.StatusCreated || code == http.StatusConflict
		})
	}
}
