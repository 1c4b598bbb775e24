package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/proto/core"
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
			refuse(w, apierrors.NewBadRequest("specify a pod: /debug/explain?pod=NAMESPACE/NAME"))
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
		case errors.As(err, &foreign):
			status := apierrors.NewNotFound(core.Pods.GVR().GroupResource(), namespace+"/"+name)
			status.ErrStatus.Message = err.Error()
			refuse(w, status)
		case apierrors.IsNotFound(err):
			refuse(w, apierrors.NewNotFound(core.Pods.GVR().GroupResource(), name))
		default:
			refuse(w, apierrors.NewInternalError(err))
		}
	})
}

// refuse answers with a Status, which clients of the API know how to read.
func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}
