package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/scheduler/internal/explain"
)

type explained map[string]error

func (e explained) Explain(_ context.Context, namespace, name string) (*explain.Explanation, error) {
	return &explain.Explanation{Pod: namespace + "/" + name, Nodes: []explain.Node{{Name: "n1"}}}, e[name]
}

func TestExplainHandler(t *testing.T) {
	handler := explainHandler(explained{
		"gone": apierrors.NewNotFound(core.Pods.GVR().GroupResource(), "gone"), "foreign": &explain.ForeignError{}, "broken": errors.New("no answer"),
	})
	for query, want := range map[string]struct {
		code int
		body string
	}{
		"?pod=a/p":       {http.StatusOK, `"name": "n1"`},
		"":               {http.StatusBadRequest, "NAMESPACE/NAME"},
		"?pod=p":         {http.StatusBadRequest, "NAMESPACE/NAME"},
		"?pod=a/b/c":     {http.StatusBadRequest, "NAMESPACE/NAME"},
		"?pod=a/gone":    {http.StatusNotFound, `pods \"gone\" not found`},
		"?pod=a/foreign": {http.StatusNotFound, "not a profile"},
		"?pod=a/broken":  {http.StatusInternalServerError, "no answer"},
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/explain"+query, nil))
		if w.Code != want.code || !strings.Contains(w.Body.String(), want.body) {
			t.Errorf("%q: %d %q, want %d %q", query, w.Code, w.Body, want.code, want.body)
		}
		var status metav1.Status
		if want.code != http.StatusOK && (json.Unmarshal(w.Body.Bytes(), &status) != nil || status.Kind != "Status" || status.Code != int32(want.code)) {
			t.Errorf("%q: %q is no Status", query, w.Body)
		}
	}
}
