package handlers

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

// storedAsOther is a version of objects that are stored in another, as custom resources can be.
type storedAsOther struct {
	*registry.Store[*core.ConfigMap]
}

func (s storedAsOther) Info() registry.Info {
	info := s.Store.Info()
	info.StoredAs.Version = "v0"
	return info
}

// TestConvertedObjectsAreNotHeld: most of their bytes are made for one reader, so that nobody would
// find what was held of them, and it would take the place of what others find.
func TestConvertedObjectsAreNotHeld(t *testing.T) {
	const objects = 3
	store := registry.NewStore(registry.Strategy[*core.ConfigMap]{
		Resource: core.ConfigMaps, Singular: "configmap", New: func() *core.ConfigMap { return &core.ConfigMap{} },
	}, registry.Options{Storage: etcdtest.Start(t), Clock: clock.RealClock{}, Logger: zap.NewNop()})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- store.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	if err := store.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range objects {
		obj := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("c", i)}}
		if _, err := store.Create(ctx, obj, registry.Admission{}, &metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	gin.SetMode(gin.ReleaseMode)
	for _, c := range []struct {
		resource registry.Resource
		held     int
	}{{store, objects}, {storedAsOther{store}, 0}} {
		e := NewEncodings()
		d := NewDispatcher(Options{Encodings: e, Clock: clock.RealClock{}, Logger: zap.NewNop()})
		for range 2 {
			w := httptest.NewRecorder()
			context, _ := gin.CreateTestContext(w)
			context.Request = httptest.NewRequestWithContext(request.With(ctx, &request.Arrival{}), http.MethodGet, "/api/v1/namespaces/default/configmaps", http.NoBody)
			context.Request.Header.Set("Accept", runtime.ContentTypeProtobuf+";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
			info := &request.Info{Namespace: "default", Parts: []string{"configmaps"}}
			if !d.Serve(context, registry.Served{Resource: c.resource}, info) || w.Code != http.StatusOK {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
		if n, _ := e.texts.Held(); n != c.held {
			t.Errorf("%T: %d encodings are held, not %d", c.resource, n, c.held)
		}
	}
}
