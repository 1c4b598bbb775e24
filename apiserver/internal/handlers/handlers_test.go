package handlers_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/handlers"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

// server is the handlers over a real etcd, with config maps and nodes to serve.
type server struct {
	*httptest.Server
	t          testing.TB
	configMaps *registry.Store[*core.ConfigMap]
}

func start(t testing.TB) *server {
	t.Helper()
	gin.SetMode(gin.ReleaseMode)
	options := registry.Options{
		Storage: etcdtest.Start(t),
		Clock:   clock.RealClock{},
		Logger:  zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)),
	}
	s := &server{t: t}
	s.configMaps = registry.NewStore(registry.Strategy[*core.ConfigMap]{
		Resource: core.ConfigMaps, Singular: "configmap", ShortNames: []string{"cm"},
		New:                 func() *core.ConfigMap { return &core.ConfigMap{} },
		UnconditionalUpdate: true,
		CreateOnUpdate:      true,
	}, options)
	nodes := registry.NewStore(registry.Strategy[*core.Node]{
		Resource: core.Nodes, Singular: "node", StoragePrefix: "minions",
		New:    func() *core.Node { return &core.Node{} },
		Update: registry.Change[*core.Node]{Prepare: func(_ context.Context, obj, old *core.Node) { obj.Status = old.Status }},
		Status: &registry.Change[*core.Node]{Prepare: func(_ context.Context, obj, old *core.Node) { obj.Spec = old.Spec }},
	}, options)
	run(t, s.configMaps.Run, nodes.Run)
	for _, wait := range []func(context.Context) error{s.configMaps.WaitReady, nodes.WaitReady} {
		if err := wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	engine := gin.New()
	engine.Use(func(c *gin.Context) {
		warnings := &request.Warnings{}
		c.Request = c.Request.WithContext(request.WithWarnings(c.Request.Context(), warnings))
		c.Writer = &warningWriter{c.Writer, warnings}
	})
	handlers.Install(engine, handlers.Options{
		Resources: []registry.Served{
			{Resource: s.configMaps, Subresources: []registry.Subresource{echo}},
			{Resource: nodes},
		},
		Creatable: []handlers.Creatable{{
			Resource:    core.Resource{Version: "v1", Name: "bindings", Kind: "Binding", Namespaced: true},
			Subresource: echo,
		}},
		Clock:  clock.RealClock{},
		Logger: options.Logger,
	})
	s.Server = httptest.NewServer(engine)
	t.Cleanup(s.Server.Close)
	return s
}

// run runs until the test ends, and waits for the end.
func run(t testing.TB, loops ...func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, len(loops))
	for _, loop := range loops {
		go func() { done <- loop(ctx) }()
	}
	t.Cleanup(func() {
		cancel()
		for range loops {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("loop ended with %v", err)
			}
		}
	})
}

// warningWriter stands for the filter that writes warnings.
type warningWriter struct {
	gin.ResponseWriter
	warnings *request.Warnings
}

func (w *warningWriter) WriteHeader(code int) {
	for _, text := range w.warnings.All() {
		w.Header().Add("Warning", text)
	}
	w.ResponseWriter.WriteHeader(code)
}

// echo is a subresource that answers with what it gets.
var echo = registry.Subresource{
	Name: "echo", Kind: core.Resource{Version: "v1", Kind: "Binding"}.GVK(),
	New: func() any { return &core.Binding{} },
	Create: func(_ context.Context, namespace, name string, obj any, _ *metav1.CreateOptions) (any, error) {
		binding := obj.(*core.Binding)
		binding.Target.Name = namespace + "/" + name
		return binding, nil
	},
	Connect: map[string]func(context.Context, http.ResponseWriter, *http.Request, string, string) error{
		http.MethodGet: func(_ context.Context, w http.ResponseWriter, r *http.Request, namespace, name string) error {
			_, err := io.WriteString(w, "connected to "+namespace+"/"+name+" at "+r.URL.Path)
			return err
		},
	},
}

const (
	collection = "/api/v1/namespaces/default/configmaps"
	jsonType   = "application/json"
)

type answer struct {
	code   int
	header http.Header
	body   []byte
}

// do sends a request; headers come in pairs of name and value.
func (s *server) do(method, path, body string, headers ...string) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, text}
}

func (a answer) into(t testing.TB, obj any) {
	t.Helper()
	if err := json.Unmarshal(a.body, obj); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

// wantStatus checks that the answer is a Status of this kind whose message has
// this in it.
func (a answer) wantStatus(t testing.TB, code int, reason metav1.StatusReason, message string) {
	t.Helper()
	var status metav1.Status
	a.into(t, &status)
	if a.code != code || status.Code != int32(code) || status.Reason != reason || status.Kind != "Status" || status.APIVersion != "v1" || !strings.Contains(status.Message, message) {
		t.Errorf("got %d %s\nwant %d %s with %q", a.code, a.body, code, reason, message)
	}
}

func configMap(name, value string) string {
	return `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"` + name + `","labels":{"app":"` + value + `"}},"data":{"k":"` + value + `"}}`
}

func (s *server) create(name, value string) *core.ConfigMap {
	s.t.Helper()
	a := s.do("POST", collection, configMap(name, value))
	if a.code != http.StatusCreated {
		s.t.Fatalf("create %s: %d %s", name, a.code, a.body)
	}
	made := &core.ConfigMap{}
	a.into(s.t, made)
	return made
}

func TestRound(t *testing.T) {
	s := start(t)
	made := s.create("a", "1")
	if made.UID == "" || made.ResourceVersion == "" || made.CreationTimestamp.IsZero() || made.Namespace != "default" || made.Kind != "ConfigMap" {
		t.Errorf("created %+v", made)
	}
	var got core.ConfigMap
	s.do("GET", collection+"/a", "").into(t, &got)
	if got.Data["k"] != "1" || got.ResourceVersion != made.ResourceVersion {
		t.Errorf("got %+v", got)
	}
	s.do("PUT", collection+"/a", configMap("a", "2")).into(t, &got)
	if got.Data["k"] != "2" || got.UID != made.UID {
		t.Errorf("updated %+v", got)
	}
	if a := s.do("PUT", collection+"/b", configMap("b", "new")); a.code != http.StatusCreated {
		t.Errorf("create by PUT: %d %s", a.code, a.body)
	}
	var list corev1.ConfigMapList
	s.do("GET", collection, "").into(t, &list)
	if len(list.Items) != 2 || list.Kind != "ConfigMapList" || list.ResourceVersion == "" {
		t.Errorf("list %+v", list)
	}
	s.do("GET", "/api/v1/configmaps?labelSelector=app%3Dnew", "").into(t, &list)
	if len(list.Items) != 1 || list.Items[0].Name != "b" {
		t.Errorf("selected %+v", list.Items)
	}
	var status metav1.Status
	s.do("DELETE", collection+"/a", "").into(t, &status)
	if status.Status != metav1.StatusSuccess || status.Details.Name != "a" || status.Details.UID != made.UID {
		t.Errorf("deleted: %+v", status)
	}
	s.do("GET", collection+"/a", "").wantStatus(t, 404, metav1.StatusReasonNotFound, `configmaps "a" not found`)
	if a := s.do("DELETE", collection+"?labelSelector=app%3Dnew", ""); a.code != http.StatusOK {
		t.Errorf("delete collection: %d %s", a.code, a.body)
	}
	list = corev1.ConfigMapList{}
	if s.do("GET", collection, "").into(t, &list); len(list.Items) != 0 {
		t.Errorf("left: %+v", list.Items)
	}
}

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
		{"broken JSON", "POST", collection, `{"metadata":`, nil, 400, metav1.StatusReasonBadRequest, "cannot be handled as a ConfigMap"},
		{"no JSON at all", "POST", collection, `hello`, nil, 400, metav1.StatusReasonBadRequest, "invalid character"},
		{"empty body", "POST", collection, ``, nil, 400, metav1.StatusReasonBadRequest, "cannot be handled"},
		{"wrong type", "POST", collection, `{"metadata":{"name":"x"},"data":5}`, nil, 400, metav1.StatusReasonBadRequest, "cannot unmarshal"},
		{"unknown field, strict", "POST", collection + "?fieldValidation=Strict", `{"metadata":{"name":"x"},"nonsense":1}`, nil, 400, metav1.StatusReasonBadRequest, `unknown field "nonsense"`},
		{"doubled field, strict", "POST", collection + "?fieldValidation=Strict", `{"metadata":{"name":"x"},"data":{"a":"1","a":"2"}}`, nil, 400, metav1.StatusReasonBadRequest, `duplicate field`},
		{"bad fieldValidation", "POST", collection + "?fieldValidation=Maybe", configMap("x", "1"), nil, 422, metav1.StatusReasonInvalid, "fieldValidation"},
		{"bad dryRun", "POST", collection + "?dryRun=Perhaps", configMap("x", "1"), nil, 422, metav1.StatusReasonInvalid, "dryRun"},
		{"broken YAML", "POST", collection, "a: [", []string{"Content-Type", "application/yaml"}, 400, metav1.StatusReasonBadRequest, "cannot be handled"},
		{"broken protobuf", "POST", collection, "k8s\x00junk", []string{"Content-Type", "application/vnd.kubernetes.protobuf"}, 400, metav1.StatusReasonBadRequest, "cannot be handled"},
		{"unknown content type", "POST", collection, "x", []string{"Content-Type", "text/plain"}, 415, metav1.StatusReasonUnsupportedMediaType, "application/json"},
		{"other kind", "POST", collection, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}`, nil, 400, metav1.StatusReasonBadRequest, "Secret"},
		{"other version", "POST", collection, `{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"x"}}`, nil, 400, metav1.StatusReasonBadRequest, "does not match the expected API version"},
		{"other namespace", "POST", collection, `{"metadata":{"name":"x","namespace":"other"}}`, nil, 400, metav1.StatusReasonBadRequest, "namespace of the provided object does not match"},
		{"other name", "PUT", collection + "/x", configMap("y", "1"), nil, 400, metav1.StatusReasonBadRequest, "does not match the name on the URL"},
		{"no name", "POST", collection, `{"data":{}}`, nil, 422, metav1.StatusReasonInvalid, "name or generateName is required"},
		{"bad name", "POST", collection, configMap("UPPER", "1"), nil, 422, metav1.StatusReasonInvalid, "metadata.name: Invalid value"},
		{"resourceVersion on create", "POST", collection, `{"metadata":{"name":"x","resourceVersion":"5"}}`, nil, 400, metav1.StatusReasonBadRequest, "resourceVersion should not be set"},
		{"too large", "POST", collection, `{"data":{"k":"`+strings.Repeat("x", handlers.DefaultMaxBody)+`"}}`, nil, 413, metav1.StatusReasonRequestEntityTooLarge, "limit is 3145728"},
		{"not acceptable", "GET", collection + "/a", "", []string{"Accept", "image/png"}, 406, metav1.StatusReasonNotAcceptable, "application/json"},
		{"watch in YAML", "GET", collection + "?watch=1", "", []string{"Accept", "application/yaml"}, 406, metav1.StatusReasonNotAcceptable, "application/json"},
		{"verb that is not there", "PUT", collection, "{}", nil, 405, metav1.StatusReasonMethodNotAllowed, "put is not supported"},
		{"create in all namespaces", "POST", "/api/v1/configmaps", configMap("x", "1"), nil, 405, metav1.StatusReasonMethodNotAllowed, ""},
		{"bad label selector", "GET", collection + "?labelSelector=a%3D%3D%3Db", "", nil, 400, metav1.StatusReasonBadRequest, ""},
		{"unknown field selector", "GET", collection + "?fieldSelector=data.k%3D1", "", nil, 400, metav1.StatusReasonBadRequest, "field label not supported: data.k"},
		{"bad resourceVersion", "GET", collection + "?resourceVersion=abc", "", nil, 400, metav1.StatusReasonBadRequest, "resourceVersion"},
		{"match without version", "GET", collection + "?resourceVersionMatch=Exact", "", nil, 422, metav1.StatusReasonInvalid, "resourceVersionMatch"},
		{"bad continue", "GET", collection + "?continue=xx", "", nil, 400, metav1.StatusReasonBadRequest, "continue key is not valid"},
		{"bad limit", "GET", collection + "?limit=few", "", nil, 400, metav1.StatusReasonBadRequest, "limit"},
		{"server-side apply", "PATCH", collection + "/a?fieldManager=x", "{}", []string{"Content-Type", "application/apply-patch+yaml"}, 415, metav1.StatusReasonUnsupportedMediaType, "server-side apply is not supported"},
		{"patch of nothing known", "PATCH", collection + "/a", "{}", []string{"Content-Type", jsonType}, 415, metav1.StatusReasonUnsupportedMediaType, "application/merge-patch+json"},
		{"broken merge patch", "PATCH", collection + "/a", "[1]", []string{"Content-Type", "application/merge-patch+json"}, 400, metav1.StatusReasonBadRequest, "decode patch"},
		{"broken JSON patch", "PATCH", collection + "/a", `{"op":"add"}`, []string{"Content-Type", "application/json-patch+json"}, 400, metav1.StatusReasonBadRequest, "decode JSON patch"},
		{"JSON patch whose test fails", "PATCH", collection + "/a", `[{"op":"test","path":"/data/k","value":"no"}]`, []string{"Content-Type", "application/json-patch+json"}, 422, metav1.StatusReasonInvalid, "rejected"},
		{"patch to a wrong type", "PATCH", collection + "/a", `{"data":5}`, []string{"Content-Type", "application/merge-patch+json"}, 422, metav1.StatusReasonInvalid, "cannot unmarshal"},
		{"patch of the name", "PATCH", collection + "/a", `{"metadata":{"name":"b"}}`, []string{"Content-Type", "application/merge-patch+json"}, 400, metav1.StatusReasonBadRequest, "does not match"},
		{"patch of what is not there", "PATCH", collection + "/none", `{}`, []string{"Content-Type", "application/merge-patch+json"}, 404, metav1.StatusReasonNotFound, ""},
		{"bad grace", "DELETE", collection + "/a?gracePeriodSeconds=soon", "", nil, 400, metav1.StatusReasonBadRequest, "gracePeriodSeconds"},
		{"bad delete options", "DELETE", collection + "/a", `{"gracePeriodSeconds":"soon"}`, nil, 400, metav1.StatusReasonBadRequest, ""},
		{"bad propagation", "DELETE", collection + "/a", `{"propagationPolicy":"Sideways"}`, nil, 422, metav1.StatusReasonInvalid, "propagationPolicy"},
		{"bad includeObject", "GET", collection + "?includeObject=Some", "", []string{"Accept", "application/json;as=Table;g=meta.k8s.io;v=v1"}, 400, metav1.StatusReasonBadRequest, "includeObject"},
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

func TestPatchFormats(t *testing.T) {
	s := start(t)
	s.create("a", "1")
	for _, c := range []struct{ media, patch, want string }{
		{"application/json-patch+json", `[{"op":"replace","path":"/data/k","value":"json"}]`, "json"},
		{"application/merge-patch+json", `{"data":{"k":"merge"}}`, "merge"},
		{"application/strategic-merge-patch+json", `{"data":{"k":"strategic"}}`, "strategic"},
	} {
		var got core.ConfigMap
		a := s.do("PATCH", collection+"/a", c.patch, "Content-Type", c.media)
		if a.into(t, &got); a.code != 200 || got.Data["k"] != c.want {
			t.Errorf("%s: %d %s", c.media, a.code, a.body)
		}
	}
}

func TestFormsIn(t *testing.T) {
	s := start(t)
	obj := &core.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "proto"}, Data: map[string]string{"k": "v"}}
	body, err := runtime.Encode(protobuf.NewSerializer(core.Scheme, core.Scheme), obj)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ media, body string }{
		"proto": {"application/vnd.kubernetes.protobuf", string(body)},
		"yaml":  {"application/yaml", "metadata:\n  name: yaml\ndata:\n  k: v\n"},
	} {
		var got core.ConfigMap
		a := s.do("POST", collection, c.body, "Content-Type", c.media)
		if a.into(t, &got); a.code != 201 || got.Data["k"] != "v" || got.Name != name {
			t.Errorf("%s: %d %s", c.media, a.code, a.body)
		}
	}
}

func TestFormsOut(t *testing.T) {
	s := start(t)
	made := s.create("a", "1")
	t.Run("yaml", func(t *testing.T) {
		var got core.ConfigMap
		a := s.do("GET", collection+"/a", "", "Accept", "application/yaml")
		if err := yaml.Unmarshal(a.body, &got); err != nil || got.UID != made.UID || a.header.Get("Content-Type") != "application/yaml" {
			t.Errorf("%v: %s", err, a.body)
		}
	})
	t.Run("protobuf", func(t *testing.T) {
		a := s.do("GET", collection, "", "Accept", "application/vnd.kubernetes.protobuf,application/json")
		obj, _, err := protobuf.NewSerializer(core.Scheme, core.Scheme).Decode(a.body, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		list := obj.(*corev1.ConfigMapList)
		if len(list.Items) != 1 || list.Items[0].UID != made.UID || list.ResourceVersion == "" {
			t.Errorf("got %+v", list)
		}
	})
	t.Run("table", func(t *testing.T) {
		var table metav1.Table
		s.do("GET", collection, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json").into(t, &table)
		if table.Kind != "Table" || table.APIVersion != "meta.k8s.io/v1" || len(table.ColumnDefinitions) != 2 || len(table.Rows) != 1 || table.Rows[0].Cells[0] != "a" {
			t.Fatalf("got %+v", table)
		}
		var partial metav1.PartialObjectMetadata
		if err := json.Unmarshal(table.Rows[0].Object.Raw, &partial); err != nil || partial.Kind != "PartialObjectMetadata" || partial.Name != "a" {
			t.Errorf("row's object: %s, %v", table.Rows[0].Object.Raw, err)
		}
	})
	t.Run("metadata", func(t *testing.T) {
		var list metav1.PartialObjectMetadataList
		s.do("GET", collection, "", "Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io").into(t, &list)
		if list.Kind != "PartialObjectMetadataList" || len(list.Items) != 1 || list.Items[0].Name != "a" {
			t.Errorf("got %+v", list)
		}
	})
	t.Run("pretty", func(t *testing.T) {
		if a := s.do("GET", collection+"/a?pretty=true", ""); !bytes.Contains(a.body, []byte("\n  \"metadata\": {")) {
			t.Errorf("got %s", a.body)
		}
	})
	t.Run("preference", func(t *testing.T) {
		a := s.do("GET", collection+"/a", "", "Accept", "application/yaml;q=0.5, application/json;q=0.9")
		if a.header.Get("Content-Type") != jsonType {
			t.Errorf("got %s", a.header.Get("Content-Type"))
		}
	})
}

func TestLargeListsAreCompressed(t *testing.T) {
	s := start(t)
	for _, name := range []string{"a", "b", "c"} {
		s.create(name, "v")
		s.do("PATCH", collection+"/"+name, `{"data":{"k":"`+strings.Repeat("x", 60<<10)+`"}}`, "Content-Type", "application/merge-patch+json")
	}
	a := s.do("GET", collection, "", "Accept-Encoding", "gzip")
	if a.header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%d bytes came as they are", len(a.body))
	}
	z, err := gzip.NewReader(bytes.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	var list corev1.ConfigMapList
	if err := json.NewDecoder(z).Decode(&list); err != nil || len(list.Items) != 3 {
		t.Errorf("%d items, %v", len(list.Items), err)
	}
	if a := s.do("GET", collection+"/a", "", "Accept-Encoding", "gzip"); a.header.Get("Content-Encoding") != "" {
		t.Error("a small body was compressed")
	}
}

func TestPages(t *testing.T) {
	s := start(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.create(name, "v")
	}
	var names []string
	next := ""
	for page := 0; ; page++ {
		var list corev1.ConfigMapList
		s.do("GET", collection+"?limit=2&continue="+next, "").into(t, &list)
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
		if page == 0 {
			if list.RemainingItemCount == nil || *list.RemainingItemCount != 3 {
				t.Errorf("remaining: %v", list.RemainingItemCount)
			}
			// A list is one moment, however long its reading takes.
			s.create("bb", "late")
			s.do("DELETE", collection+"/e", "")
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	if got := strings.Join(names, ""); got != "abcde" {
		t.Errorf("pages together: %s", got)
	}
}

// follow opens a watch and returns a function that reads its next event.
func (s *server) follow(query string, headers ...string) (next func() (string, json.RawMessage)) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", s.URL+collection+"?watch=true&"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewReader(res.Body)
	return func() (string, json.RawMessage) {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err.Error(), nil
		}
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := json.Unmarshal(line, &event); err != nil {
			s.t.Fatalf("%v in %s", err, line)
		}
		return event.Type, event.Object
	}
}

func TestWatch(t *testing.T) {
	s := start(t)
	made := s.create("a", "1")
	all := s.follow("resourceVersion=" + made.ResourceVersion)
	ones := s.follow("labelSelector=app%3D1")
	table := s.follow("", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if kind, _ := ones(); kind != "ADDED" {
		t.Errorf("initial state: %s", kind)
	}
	s.do("PUT", collection+"/a", configMap("a", "2"))
	if kind, object := all(); kind != "MODIFIED" || !bytes.Contains(object, []byte(`"k":"2"`)) {
		t.Errorf("got %s %s", kind, object)
	}
	if kind, object := ones(); kind != "DELETED" || !bytes.Contains(object, []byte(`"k":"1"`)) {
		t.Errorf("what stops matching: %s %s", kind, object)
	}
	s.do("PUT", collection+"/a", configMap("a", "1"))
	if kind, _ := ones(); kind != "ADDED" {
		t.Errorf("what comes to match: %s", kind)
	}
	s.do("DELETE", collection+"/a", "")
	all()
	if kind, object := all(); kind != "DELETED" || !bytes.Contains(object, []byte(`"k":"1"`)) {
		t.Errorf("got %s %s", kind, object)
	}
	for i, want := range []string{"ADDED", "MODIFIED"} {
		kind, object := table()
		var row metav1.Table
		if err := json.Unmarshal(object, &row); err != nil {
			t.Fatal(err)
		}
		if kind != want || len(row.Rows) != 1 || (len(row.ColumnDefinitions) > 0) != (i == 0) {
			t.Errorf("table event %d: %s %s", i, kind, object)
		}
	}
}

func TestWatchOfOneAndItsEnd(t *testing.T) {
	s := start(t)
	s.create("a", "1")
	s.create("b", "1")
	next := s.follow("fieldSelector=metadata.name%3Db&timeoutSeconds=1")
	if kind, object := next(); kind != "ADDED" || !bytes.Contains(object, []byte(`"name":"b"`)) {
		t.Errorf("got %s %s", kind, object)
	}
	if kind, _ := next(); kind != io.EOF.Error() {
		t.Errorf("after timeoutSeconds: %s", kind)
	}
}

func TestWatchInProtobuf(t *testing.T) {
	s := start(t)
	made := s.create("a", "1")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+collection+"?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf;stream=watch")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var head [4]byte
	if _, err := io.ReadFull(res.Body, head[:]); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, int(head[0])<<24|int(head[1])<<16|int(head[2])<<8|int(head[3]))
	if _, err := io.ReadFull(res.Body, body); err != nil {
		t.Fatal(err)
	}
	var event metav1.WatchEvent
	if err := event.Unmarshal(body); err != nil {
		t.Fatal(err)
	}
	obj, _, err := protobuf.NewSerializer(core.Scheme, core.Scheme).Decode(event.Object.Raw, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if event.Type != "ADDED" || obj.(*core.ConfigMap).UID != made.UID {
		t.Errorf("got %s %+v", event.Type, obj)
	}
}

func TestStreamedList(t *testing.T) {
	s := start(t)
	s.create("a", "1")
	next := s.follow("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=")
	if kind, _ := next(); kind != "ADDED" {
		t.Errorf("first: %s", kind)
	}
	kind, object := next()
	var mark core.ConfigMap
	if err := json.Unmarshal(object, &mark); err != nil {
		t.Fatal(err)
	}
	if kind != "BOOKMARK" || mark.Annotations["k8s.io/initial-events-end"] != "true" || mark.ResourceVersion == "" || mark.Kind != "ConfigMap" {
		t.Errorf("got %s %s", kind, object)
	}
}

func TestSubresources(t *testing.T) {
	s := start(t)
	body := `{"kind":"Binding","apiVersion":"v1","metadata":{"name":"a"},"target":{}}`
	var got core.Binding
	for path, want := range map[string]string{collection + "/a/echo": "default/a", "/api/v1/namespaces/default/bindings": "default/a"} {
		a := s.do("POST", path, body)
		if a.into(t, &got); a.code != 201 || got.Target.Name != want || got.Kind != "Binding" {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	if a := s.do("GET", collection+"/a/echo/some/where", ""); string(a.body) != "connected to default/a at "+collection+"/a/echo/some/where" {
		t.Errorf("connected: %d %s", a.code, a.body)
	}
	s.do("PUT", collection+"/a/echo", body).wantStatus(t, 405, metav1.StatusReasonMethodNotAllowed, "")
}

func TestStatusIsSeparate(t *testing.T) {
	s := start(t)
	s.do("POST", "/api/v1/nodes", `{"metadata":{"name":"n"}}`)
	patch := `{"spec":{"unschedulable":true},"status":{"nodeInfo":{"kubeletVersion":"v1"}}}`
	for _, c := range []struct {
		path          string
		unschedulable bool
		version       string
	}{{"/api/v1/nodes/n/status", false, "v1"}, {"/api/v1/nodes/n", true, "v1"}} {
		var got core.Node
		a := s.do("PATCH", c.path, patch, "Content-Type", "application/strategic-merge-patch+json")
		if a.into(t, &got); got.Spec.Unschedulable != c.unschedulable || got.Status.NodeInfo.KubeletVersion != c.version {
			t.Errorf("%s: %d %s", c.path, a.code, a.body)
		}
	}
}

func newConfigMap(name, value string) *core.ConfigMap {
	return &core.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Data:       map[string]string{"k": value},
	}
}
