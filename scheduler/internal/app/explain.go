package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/scheduler/internal/explain"
)

// explainer says what all nodes answer to a pod.
type explainer interface {
	Explain(ctx context.Context, namespace, name string) (*explain.Explanation, error)
}

// explainHandler answers /debug/explain?pod=NAMESPACE/NAME in JSON.
func explainHandler(e explainer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		namespace, name, whole := strings.Cut(r.URL.Query().Get("pod"), "/")
		if !whole || namespace == "" || name == "" || strings.Contains(name, "/") {
			http.Error(w, "say which pod: /debug/explain?pod=NAMESPACE/NAME", http.StatusBadRequest)
			return
		}
		explanation, err := e.Explain(r.Context(), namespace, name)
		var foreign *explain.ForeignError
		switch {
		case err == nil:
			w.Header().Set("Content-Type", "application/json")
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", "  ")
			_ = encoder.Encode(explanation)
		case errors.As(err, &foreign), apierrors.IsNotFound(err):
			http.Error(w, err.Error(), http.StatusNotFound)
		default:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}
