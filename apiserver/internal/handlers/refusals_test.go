package handlers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

func TestRefusals(t *testing.T) {
	s := start(t)
	s.create("a", "1")
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		code                     int
		reason                   metav1.StatusReason
		message                  string
	}{
		{"twice", "POST", collection, configMap("a", "1"), nil, 409, metav1.StatusReasonAlreadyExists, `configmaps "a" already exists`},
		{"broken JSON", "POST", collection, `{"metadata":`, nil, 400, metav1.StatusReasonBadRequest,
			"the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind"},
		{"no JSON at all", "POST", collection, `hello`, nil, 400, metav1.StatusReasonBadRequest, "invalid character"},
		{"empty body", "POST", collection, ``, nil, 400, metav1.StatusReasonBadRequest, "json parse error: unexpected end of JSON input"},
		{"wrong type", "POST", collection, `{"metadata":{"name":"x"},"data":5}`, nil, 400, metav1.StatusReasonBadRequest, "cannot unmarshal"},
		{"unknown field, strict", "POST", collection + "?fieldValidation=Strict", `{"metadata":{"name":"x"},"nonsense":1}`, nil, 400, metav1.StatusReasonBadRequest,
			`unknown field "nonsense"`},
		{"doubled field, strict", "POST", collection + "?fieldValidation=Strict", `{"metadata":{"name":"x"},"data":{"a":"1","a":"2"}}`, nil, 400,
			metav1.StatusReasonBadRequest, `duplicate field`},
		{"bad fieldValidation", "POST", collection + "?fieldValidation=Maybe", configMap("x", "1"), nil, 422, metav1.StatusReasonInvalid, "fieldValidation"},
		{"bad dryRun", "POST", collection + "?dryRun=Perhaps", configMap("x", "1"), nil, 422, metav1.StatusReasonInvalid, "dryRun"},
		{"broken YAML", "POST", collection, "a: [", []string{"Content-Type", "application/yaml"}, 400, metav1.StatusReasonBadRequest, "cannot be handled"},
		{"broken protobuf", "POST", collection, "k8s\x00junk", []string{"Content-Type", "application/vnd.kubernetes.protobuf"}, 400, metav1.StatusReasonBadRequest,
			"cannot be handled"},
		{"protobuf of many parts", "POST", collection, ownedByMany(100_001), []string{"Content-Type", "application/vnd.kubernetes.protobuf"}, 413,
			metav1.StatusReasonRequestEntityTooLarge, "at most 100000 are accepted"},
		{"unknown content type", "POST", collection, "x", []string{"Content-Type", "text/plain"}, 415, metav1.StatusReasonUnsupportedMediaType, "application/json"},
		{"other kind", "POST", collection, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}`, nil, 400, metav1.StatusReasonBadRequest,
			"Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion"},
		{"unknown kind", "POST", collection, `{"kind":"Foo","apiVersion":"v1","metadata":{"name":"x"}}`, nil, 400, metav1.StatusReasonBadRequest,
			`no kind "Foo" is registered for version "v1"`},
		{"no version", "POST", collection, `{"kind":"ConfigMap","apiVersion":"a/b/c","metadata":{"name":"x"}}`, nil, 400, metav1.StatusReasonBadRequest,
			"unexpected GroupVersion string: a/b/c"},
		{"other version", "POST", collection, `{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"x"}}`, nil, 400, metav1.StatusReasonBadRequest,
			`no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"`},
		{"other namespace", "POST", collection, `{"metadata":{"name":"x","namespace":"other"}}`, nil, 400, metav1.StatusReasonBadRequest,
			"namespace of the provided object does not match"},
		{"other name", "PUT", collection + "/x", configMap("y", "1"), nil, 400, metav1.StatusReasonBadRequest, "does not match the name on the URL"},
		{"no name", "POST", collection, `{"data":{}}`, nil, 422, metav1.StatusReasonInvalid, "name or generateName is required"},
		{"bad name", "POST", collection, configMap("UPPER", "1"), nil, 422, metav1.StatusReasonInvalid, "metadata.name: Invalid value"},
		{"resourceVersion on create", "POST", collection, `{"metadata":{"name":"x","resourceVersion":"5"}}`, nil, 400, metav1.StatusReasonBadRequest,
			"resourceVersion should not be set"},
		{"a resourceVersion that is none", "POST", collection, `{"metadata":{"name":"odd-version","resourceVersion":"not-supplied"}}`, nil, 201, "", ""},
		{"too large", "POST", collection, `{"data":{"k":"` + strings.Repeat("x", maxBody) + `"}}`, nil, 413, metav1.StatusReasonRequestEntityTooLarge,
			"limit is 3145728"},
		{"not acceptable", "GET", collection + "/a", "", []string{"Accept", "image/png"}, 406, metav1.StatusReasonNotAcceptable, "application/json"},
		// Which of two errors is reported.
		{"create: type before options", "POST", collection + "?dryRun=x", "x", []string{"Content-Type", "text/plain"}, 415, metav1.StatusReasonUnsupportedMediaType,
			"application/json"},
		{"create: answer before type", "POST", collection + "?dryRun=x", "x", []string{"Content-Type", "text/plain", "Accept", "image/png"}, 406,
			metav1.StatusReasonNotAcceptable, "application/json"},
		{"update: options before type", "PUT", collection + "/a?dryRun=x", "x", []string{"Content-Type", "text/plain"}, 422, metav1.StatusReasonInvalid, "dryRun"},
		{"update: answer before options", "PUT", collection + "/a?dryRun=x", "{}", []string{"Accept", "image/png"}, 406, metav1.StatusReasonNotAcceptable,
			"application/json"},
		{"patch: answer before options", "PATCH", collection + "/a?dryRun=x", "{}", []string{"Content-Type", "application/merge-patch+json", "Accept", "image/png"},
			406, metav1.StatusReasonNotAcceptable, "application/json"},
		{"delete: answer before options", "DELETE", collection + "/a?dryRun=x", "", []string{"Accept", "image/png"}, 406, metav1.StatusReasonNotAcceptable,
			"application/json"},
		{"delete all: answer before options", "DELETE", collection + "?dryRun=x&limit=few", "", []string{"Accept", "image/png"}, 406,
			metav1.StatusReasonNotAcceptable, "application/json"},
		{"list: answer before options", "GET", collection + "?limit=few", "", []string{"Accept", "image/png"}, 406, metav1.StatusReasonNotAcceptable,
			"application/json"},
		{"a watch in no form", "GET", collection + "?watch=1", "", []string{"Accept", "image/png"}, 406, metav1.StatusReasonNotAcceptable,
			"application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{"a kind left out", "GET", collection + "/a", "", []string{"Accept", "application/json;g=meta.k8s.io;v=v1"}, 406, metav1.StatusReasonNotAcceptable,
			"application/json"},
		{"watch, bad includeObject", "GET", collection + "?watch=1&includeObject=Some", "", []string{"Accept", "application/json;as=Table;g=meta.k8s.io;v=v1"}, 400,
			metav1.StatusReasonBadRequest, "includeObject"},
		{"export", "GET", collection + "/a?export=true", "", nil, 400, metav1.StatusReasonBadRequest, "export"},
		{"no export", "GET", collection + "/a?export=false", "", nil, 200, "", ""},
		{"watch in YAML", "GET", collection + "?watch=1", "", []string{"Accept", "application/yaml"}, 406, "", ""},
		{"watch rather in YAML", "GET", collection + "?watch=1", "", []string{"Accept", "application/yaml,application/json"}, 406, "", ""},
		{"any application", "GET", collection + "/a", "", []string{"Accept", "application/*"}, 406, metav1.StatusReasonNotAcceptable,
			"Available representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{"any application, of lists", "GET", collection, "", []string{"Accept", "application/*"}, 406, metav1.StatusReasonNotAcceptable,
			"application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"},
		{"another stream", "GET", collection + "/a", "", []string{"Accept", "application/json;stream=foo"}, 406, metav1.StatusReasonNotAcceptable,
			"only the following media types are accepted: application/json"},
		{"parameters without a value", "GET", collection + "/a", "", []string{"Accept", "application/json;x"}, 200, "", ""},
		{"all in no namespace", "DELETE", "/api/v1/namespaces//configmaps", "", nil, 400, metav1.StatusReasonBadRequest, "Namespace parameter required."},
		{"one in no namespace", "DELETE", "/api/v1/namespaces//configmaps/a", "", nil, 400, metav1.StatusReasonBadRequest, "Namespace parameter required."},
		{"read in no namespace", "GET", "/api/v1/namespaces//configmaps/a", "", nil, 400, metav1.StatusReasonBadRequest, "Namespace parameter required."},
		{"watch of one, of which another is selected", "GET", "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.name%3Dother", "", nil, 400,
			metav1.StatusReasonBadRequest, "fieldSelector metadata.name doesn't match requested name"},
		{"watch of one, of which something is selected", "GET", "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.namespace%3Ddefault", "", nil,
			400, metav1.StatusReasonBadRequest, "fieldSelector metadata.name doesn't match requested name"},
		{"a list as one", "GET", collection, "", []string{"Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}, 406,
			metav1.StatusReasonNotAcceptable, "but the requested object is a list (ConfigMapList)"},
		{"one as a list", "GET", collection + "/a", "", []string{"Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}, 406,
			metav1.StatusReasonNotAcceptable, "but the requested object is not a list (ConfigMap)"},
		{"a list of tables", "GET", collection, "", []string{"Accept", "application/json;as=TableList;v=v1;g=meta.k8s.io"}, 406, metav1.StatusReasonNotAcceptable,
			"application/json"},
		{"empty limit", "GET", collection + "?limit=", "", nil, 400, metav1.StatusReasonBadRequest, `strconv.ParseInt: parsing "": invalid syntax`},
		{"empty propagation", "DELETE", collection + "/a?propagationPolicy=", "", nil, 422, metav1.StatusReasonInvalid, "propagationPolicy"},
		{"options of another kind", "DELETE", collection + "/a", `{"kind":"Pod","apiVersion":"v1"}`, nil, 400, metav1.StatusReasonBadRequest,
			`no kind "Pod" is registered for version "v1"`},
		{"options of no version", "DELETE", collection + "/a", `{"apiVersion":"a/b/c"}`, nil, 400, metav1.StatusReasonBadRequest,
			`unexpected GroupVersion string: a/b/c`},
		{"options that are no JSON", "DELETE", collection + "/a", `{`, nil, 400, metav1.StatusReasonBadRequest,
			"couldn't get version/kind; json parse error: unexpected end of JSON input"},
		{"patch to another kind", "PATCH", collection + "/a", `{"kind":"Foo"}`, []string{"Content-Type", "application/merge-patch+json"}, 422,
			metav1.StatusReasonInvalid, `no kind "Foo" is registered for version "v1"`},
		{"patch to another known kind", "PATCH", collection + "/a", `{"kind":"Secret"}`, []string{"Content-Type", "application/merge-patch+json"}, 422,
			metav1.StatusReasonInvalid, `the patch makes it a Secret of v1`},
		{"patch to no version", "PATCH", collection + "/a", `{"apiVersion":"a/b/c"}`, []string{"Content-Type", "application/merge-patch+json"}, 422,
			metav1.StatusReasonInvalid, `unexpected GroupVersion string: a/b/c`},
		{"strict JSON patch", "PATCH", collection + "/a?fieldValidation=Strict", `[{"op":"add","path":"/data/x","value":"1","foo":1}]`,
			[]string{"Content-Type", "application/json-patch+json"}, 422, metav1.StatusReasonInvalid, `strict decoding error: json patch unknown field "[0].foo"`},
		{"strategic patch in YAML", "PATCH", collection + "/a", "data: {k: '2'}", []string{"Content-Type", "application/strategic-merge-patch+json"}, 400,
			metav1.StatusReasonBadRequest, "invalid JSON patch"},
		{"verb that is not there", "PUT", collection, "{}", nil, 405, metav1.StatusReasonMethodNotAllowed, "does not allow this method"},
		{"create in all namespaces", "POST", "/api/v1/configmaps", configMap("x", "1"), nil, 405, metav1.StatusReasonMethodNotAllowed, ""},
		{"bad label selector", "GET", collection + "?labelSelector=a%3D%3D%3Db", "", nil, 400, metav1.StatusReasonBadRequest, ""},
		{"unknown field selector", "GET", collection + "?fieldSelector=data.k%3D1", "", nil, 400, metav1.StatusReasonBadRequest,
			`"data.k" is not a known field selector: only "metadata.name", "metadata.namespace"`},
		{"bad resourceVersion", "GET", collection + "?resourceVersion=abc", "", nil, 400, metav1.StatusReasonBadRequest, "resourceVersion"},
		{"match without version", "GET", collection + "?resourceVersionMatch=Exact", "", nil, 422, metav1.StatusReasonInvalid, "resourceVersionMatch"},
		{"bad continue", "GET", collection + "?continue=xx", "", nil, 400, metav1.StatusReasonBadRequest, "continue key is not valid"},
		{"bad limit", "GET", collection + "?limit=few", "", nil, 400, metav1.StatusReasonBadRequest, "limit"},
		{"apply as CBOR", "PATCH", collection + "/a?fieldManager=x", "{}", []string{"Content-Type", "application/apply-patch+cbor"}, 415,
			metav1.StatusReasonUnsupportedMediaType, "415: Unsupported Media Type"},
		{"patch of nothing known", "PATCH", collection + "/a", "{}", []string{"Content-Type", jsonType}, 415, metav1.StatusReasonUnsupportedMediaType,
			"415: Unsupported Media Type"},
		{"broken merge patch", "PATCH", collection + "/a", "[1]", []string{"Content-Type", "application/merge-patch+json"}, 400, metav1.StatusReasonBadRequest,
			"error decoding patch"},
		{"deep merge patch", "PATCH", collection + "/a", strings.Repeat(`{"a\"{":`, 200) + "[]" + strings.Repeat("}", 200),
			[]string{"Content-Type", "application/merge-patch+json"}, 413, metav1.StatusReasonRequestEntityTooLarge, "nested 201 levels deep"},
		{"broken JSON patch", "PATCH", collection + "/a", `{"op":"add"}`, []string{"Content-Type", "application/json-patch+json"}, 400, metav1.StatusReasonBadRequest,
			"error decoding patch"},
		{"JSON patch whose test fails", "PATCH", collection + "/a", `[{"op":"test","path":"/data/k","value":"no"}]`,
			[]string{"Content-Type", "application/json-patch+json"}, 422, metav1.StatusReasonInvalid, "rejected"},
		{"JSON patch that doubles", "PATCH", collection + "/a", doublingPatch(), []string{"Content-Type", "application/json-patch+json"}, 422,
			metav1.StatusReasonInvalid, "rejected"},
		{"patch to a wrong type", "PATCH", collection + "/a", `{"data":5}`, []string{"Content-Type", "application/merge-patch+json"}, 422, metav1.StatusReasonInvalid,
			"cannot unmarshal"},
		{"patch of the name", "PATCH", collection + "/a", `{"metadata":{"name":"b"}}`, []string{"Content-Type", "application/merge-patch+json"}, 400,
			metav1.StatusReasonBadRequest, "does not match"},
		{"broken patch of what is not there", "PATCH", collection + "/none", `[1]`, []string{"Content-Type", "application/json-patch+json"}, 404,
			metav1.StatusReasonNotFound, ""},
		{"patch of what is not there", "PATCH", collection + "/none", `{}`, []string{"Content-Type", "application/merge-patch+json"}, 404,
			metav1.StatusReasonNotFound, ""},
		{"labels that are none", "GET", collection + "?labelSelector=a+in+(", "", nil, 400, metav1.StatusReasonBadRequest, "unable to parse requirement"},
		{"a list in no time", "GET", collection + "?timeoutSeconds=soon", "", nil, 400, metav1.StatusReasonBadRequest, "invalid syntax"},
		{"a watch that goes on", "GET", collection + "?watch=1&continue=x", "", nil, 422, metav1.StatusReasonInvalid,
			"resourceVersionMatch is forbidden when continue is provided"},
		{"an exact watch", "GET", collection + "?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact", "", nil, 422, metav1.StatusReasonInvalid,
			"supported values: \"NotOlderThan\""},
		{"unsafe deletion", "DELETE", collection + "/a?ignoreStoreReadErrorWithClusterBreakingPotential=true", "", nil, 409, metav1.StatusReasonConflict,
			"unsafe deletion is not allowed because the object is decodable from storage"},
		{"unsafe deletion of all", "DELETE", collection + "?ignoreStoreReadErrorWithClusterBreakingPotential=true", "", nil, 422, metav1.StatusReasonInvalid,
			"is not allowed with DELETECOLLECTION"},
		{"deletion of another", "DELETE", collection + "/a", `{"preconditions":{"uid":"x"}}`, nil, 409, metav1.StatusReasonConflict,
			"the UID in the precondition (x) does not match the UID in record"},
		{"deletion of an older one", "DELETE", collection + "/a", `{"preconditions":{"resourceVersion":"1"}}`, nil, 409, metav1.StatusReasonConflict,
			"the ResourceVersion in the precondition (1) does not match"},
		{"forced merge patch", "PATCH", collection + "/a?force=true", `{}`, []string{"Content-Type", "application/merge-patch+json"}, 422, metav1.StatusReasonInvalid,
			"force: Forbidden: may not be specified for non-apply patch"},
		{"too many operations", "PATCH", collection + "/a", "[" + strings.Repeat(`{"op":"test","path":"/kind","value":"ConfigMap"},`, 10000) + `{}]`,
			[]string{"Content-Type", "application/json-patch+json"}, 413, metav1.StatusReasonRequestEntityTooLarge,
			"The allowed maximum operations in a JSON patch is 10000, got 10001"},
		{"patch of the uid of another state", "PATCH", collection + "/a", `{"metadata":{"uid":"other","resourceVersion":"1"}}`,
			[]string{"Content-Type", "application/merge-patch+json"}, 409, metav1.StatusReasonConflict, "the object has been modified"},
		{"patch of the uid of no state", "PATCH", collection + "/a", `{"metadata":{"uid":"other","resourceVersion":"x"}}`,
			[]string{"Content-Type", "application/merge-patch+json"}, 500, "", ""},
		{"patch of the uid", "PATCH", collection + "/a", `{"metadata":{"uid":"other"}}`, []string{"Content-Type", "application/merge-patch+json"}, 422,
			metav1.StatusReasonInvalid, "metadata.uid: Invalid value: \"other\": field is immutable"},
		{"strict patch", "PATCH", collection + "/a?fieldValidation=Strict", `{"nonsense":1,"data":{"a":"1","a":"2"}}`,
			[]string{"Content-Type", "application/merge-patch+json"}, 422, metav1.StatusReasonInvalid,
			`strict decoding error: duplicate field "data.a", unknown field "nonsense"`},
		{"strict YAML", "POST", collection + "?fieldValidation=Strict", "metadata: {name: yy}\ndata: {a: '1', a: '2'}\nfoo: 1\n",
			[]string{"Content-Type", "application/yaml"}, 400, metav1.StatusReasonBadRequest, `key "a" already set in map, unknown field "foo"`},
		{"bad grace", "DELETE", collection + "/a?gracePeriodSeconds=soon", "", nil, 400, metav1.StatusReasonBadRequest, "gracePeriodSeconds"},
		{"bad delete options", "DELETE", collection + "/a", `{"gracePeriodSeconds":"soon"}`, nil, 400, metav1.StatusReasonBadRequest, ""},
		{"bad propagation", "DELETE", collection + "/a", `{"propagationPolicy":"Sideways"}`, nil, 422, metav1.StatusReasonInvalid, "propagationPolicy"},
		{"bad includeObject", "GET", collection + "?includeObject=Some", "", []string{"Accept", "application/json;as=Table;g=meta.k8s.io;v=v1"}, 400,
			metav1.StatusReasonBadRequest, "includeObject"},
		{"status of what has none", "GET", collection + "/a/status", "", nil, 404, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := s.do(c.method, c.path, c.body, c.headers...)
			if c.reason == "" {
				if a.code != c.code {
					t.Errorf("got %d %s", a.code, a.body)
				}
				return
			}
			a.wantStatus(t, c.code, c.reason, c.message)
		})
	}
	var left core.ConfigMap
	if s.do("GET", collection+"/a", "").into(t, &left); left.Data["k"] != "1" {
		t.Errorf("refused requests changed the object: %+v", left)
	}
}

func TestStaleUpdateConflicts(t *testing.T) {
	s := start(t)
	old := s.create("a", "1")
	s.do("PUT", collection+"/a", configMap("a", "2"))
	old.Data["k"] = "3"
	text, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	s.do("PUT", collection+"/a", string(text)).wantStatus(t, 409, metav1.StatusReasonConflict,
		`Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again`)
}

func TestUnknownFieldsAreWarnedOf(t *testing.T) {
	s := start(t)
	body := `{"metadata":{"name":"x"},"nonsense":1}`
	if a := s.do("POST", collection+"?dryRun=All", body); a.code != 201 || a.header.Get("Warning") != `unknown field "nonsense"` {
		t.Errorf("default: %d, warning %q", a.code, a.header.Get("Warning"))
	}
	if a := s.do("POST", collection+"?dryRun=All&fieldValidation=Ignore", body); a.code != 201 || a.header.Get("Warning") != "" {
		t.Errorf("Ignore: %d, warning %q", a.code, a.header.Get("Warning"))
	}
	s.do("GET", collection+"/x", "").wantStatus(t, 404, metav1.StatusReasonNotFound, "")
}

// TestDoubledFieldsAreReadAsUpstreamReadsThem: if nobody asks for duplicate
// fields to be reported, the later one is merged over the earlier, element by
// element, as encoding/json does.
func TestDoubledFieldsAreReadAsUpstreamReadsThem(t *testing.T) {
	s := start(t)
	body := `{"metadata":{"name":"x","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"u","controller":true}]},` +
		`"metadata":{"ownerReferences":[{"name":"b"}]}}`
	var made core.ConfigMap
	s.do("POST", collection+"?dryRun=All&fieldValidation=Ignore", body).into(t, &made)
	if o := metav1.GetControllerOf(&made); made.Name != "x" || o == nil || o.Name != "b" || o.UID != "u" {
		t.Errorf("made %+v", made.ObjectMeta)
	}
}

// doublingPatch copies an object into itself, under a new key each time.
func doublingPatch() string {
	patch := `[{"op":"copy","from":"/data","path":"/x"}`
	for i := range 18 {
		patch += fmt.Sprintf(`,{"op":"copy","from":"/x","path":"/x/%d"}`, i)
	}
	return patch + "]"
}

// ownedByMany is an object in protobuf with that many owners, of two bytes
// each.
func ownedByMany(owners int) string {
	within := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	return "k8s\x00" + string(within(2, within(1, bytes.Repeat(within(13, nil), owners))))
}
