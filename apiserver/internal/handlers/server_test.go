package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/handlers"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

// server is the handlers over a real etcd, serving config maps and nodes.
type server struct {
	*httptest.Server
	t          testing.TB
	configMaps *registry.Store[*core.ConfigMap]
}

func start(t testing.TB) *server { return startOn(t, etcdtest.Start(t)) }

func startOn(t testing.TB, store storage.Interface) *server {
	t.Helper()
	gin.SetMode(gin.ReleaseMode)
	options := registry.Options{
		Storage: store,
		Clock:   clock.RealClock{},
		Logger:  zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)),
	}
	s := &server{t: t}
	s.configMaps = registry.NewStore(registry.Strategy[*core.ConfigMap]{
		Resource: core.ConfigMaps, Singular: "configmap", ShortNames: []string{"cm"},
		New:    func() *core.ConfigMap { return &core.ConfigMap{} },
		Update: registry.UpdateStrategy[*core.ConfigMap]{AllowCreate: true, AllowUnconditional: true},
	}, options)
	nodes := registry.NewStore(registry.Strategy[*core.Node]{
		Resource: core.Nodes, Singular: "node", StoragePrefix: "minions",
		New:    func() *core.Node { return &core.Node{} },
		Update: registry.UpdateStrategy[*core.Node]{Prepare: func(_ context.Context, obj, old *core.Node) { obj.Status = old.Status }},
		Status: &registry.UpdateStrategy[*core.Node]{Prepare: func(_ context.Context, obj, old *core.Node) { obj.Spec = old.Spec }},
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
		c.Request = c.Request.WithContext(request.With(c.Request.Context(), &request.Arrival{Warnings: warnings}))
		c.Writer = &warningWriter{c.Writer, warnings}
	})
	handlers.Install(engine, handlers.Options{
		Resources: []registry.Served{
			{Resource: s.configMaps, Subresources: []registry.Subresource{echo}},
			{Resource: nodes},
		},
		CreateOnly: []handlers.CreateOnly{{
			Resource:    core.Resource{Version: "v1", Name: "bindings", Kind: "Binding", Namespaced: true},
			Subresource: echo,
		}},
		MaxBody: maxBody,
		Clock:   clock.RealClock{},
		Logger:  options.Logger,
	})
	s.Server = httptest.NewServer(engine)
	t.Cleanup(s.Server.Close)
	return s
}

// run runs the loops until the test ends, and waits for their end.
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

// warningWriter takes the place of the filter that writes warnings.
type warningWriter struct {
	gin.ResponseWriter
	warnings *request.Warnings
}

// Unwrap is used by http.ResponseController.
func (w *warningWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *warningWriter) WriteHeader(code int) {
	for _, text := range w.warnings.All() {
		w.Header().Add("Warning", text)
	}
	w.ResponseWriter.WriteHeader(code)
}

// echo is a subresource that answers with its input.
var echo = registry.Subresource{
	Name: "echo", Kind: core.Resource{Version: "v1", Kind: "Binding"}.GVK(),
	New: func() runtime.Object { return &core.Binding{} },
	Create: func(_ context.Context, namespace, name string, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object, error) {
		binding := obj.(*core.Binding)
		binding.Target.Name = namespace + "/" + name
		return binding, nil
	},
	AnyPath: true,
	Connect: map[string]func(context.Context, http.ResponseWriter, *http.Request, string, string) error{
		http.MethodGet: func(_ context.Context, w http.ResponseWriter, r *http.Request, namespace, name string) error {
			_, err := io.WriteString(w, "connected to "+namespace+"/"+name+" at "+r.URL.Path)
			return err
		},
	},
}

const (
	maxBody    = 3 << 20 // the flag's default
	collection = "/api/v1/namespaces/default/configmaps"
	jsonType   = "application/json"
)

type answer struct {
	code   int
	header http.Header
	body   []byte
}

// do sends a request; headers are pairs of name and value.
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

// wantStatus checks that the answer is a Status with this code and reason, and
// a message that contains this text.
func (a answer) wantStatus(t testing.TB, code int, reason metav1.StatusReason, message string) {
	t.Helper()
	var status metav1.Status
	a.into(t, &status)
	if a.code != code || status.Code != int32(code) || status.Reason != reason || status.Kind != "Status" || status.APIVersion != "v1" ||
		!strings.Contains(status.Message, message) {
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

func newConfigMap(name, value string) *core.ConfigMap {
	return &core.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Data:       map[string]string{"k": value},
	}
}
