package server

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	authnchain "kctl/apiserver/internal/authn/chain"
	"kctl/apiserver/internal/config"
)

// TestEveryPathAsksWhoYouAre walks the route table: no path may be served
// without authentication.
func TestEveryPathAsksWhoYouAre(t *testing.T) {
	t.Parallel()
	o := config.Defaults()
	o.DataDir = t.TempDir()
	o.Complete()
	s, err := New(t.Context(), o, clock.RealClock{}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	handler, err := s.surface.handler("127.0.0.1:6443")
	if err != nil {
		t.Fatal(err)
	}
	router, ok := handler.(interface{ Routes() gin.RoutesInfo })
	if !ok {
		t.Fatalf("%T has no route table", handler)
	}
	routes := append(router.Routes(), gin.RouteInfo{Method: http.MethodGet, Path: "/nowhere"})
	if len(routes) < 100 {
		t.Fatalf("only %d routes", len(routes))
	}
	for _, route := range routes {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(route.Method, strings.ReplaceAll(route.Path, "*", "x"), nil))
		if open := slices.Contains(authnchain.HealthPaths, route.Path); w.Code == http.StatusUnauthorized == open {
			t.Errorf("%s %s: %d without a credential", route.Method, route.Path, w.Code)
		}
	}
}
