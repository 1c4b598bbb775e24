package filters

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/trace"
	"kctl/proto/core"
	"kctl/proto/relay"
)

// Relay keeps the stamps that come with successful requests about pods, and the
// server's own stamps of those requests.
func Relay(ring *trace.Ring, clock clock.PassiveClock, logger *zap.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		info := request.InfoFrom(c.Request.Context())
		if !aboutPod(info) || c.Query("dryRun") != "" {
			c.Next()
			return
		}
		sent, err := relay.Decode(c.GetHeader(relay.Header))
		if err != nil {
			logger.Debug("relay stamps ignored", zap.Error(err), zap.String("pod", info.Namespace+"/"+info.Name))
		}
		c.Next()
		if c.Writer.Status() >= http.StatusBadRequest {
			return
		}
		if pod, own := passed(c.Request.Context(), info, clock); pod.Name != "" {
			ring.Add(pod.Namespace, pod.Name, pod.UID, append(sent, own...)...)
		}
	}
}

// aboutPod: creating a pod, binding it, and updating its status.
func aboutPod(info *request.Info) bool {
	if !info.Resource || info.APIGroup != "" || info.ResourceName != core.Pods.Name || !info.Mutating() {
		return false
	}
	switch info.Subresource {
	case "":
		return info.Verb == "create"
	case "binding", "status":
		return true
	}
	return false
}

// passed is the pod that a request was about, with the server's own stamps: all
// those of a create, and the end of a binding.
func passed(ctx context.Context, info *request.Info, clock clock.PassiveClock) (pod request.Stored, own []relay.Stamp) {
	switch info.Subresource {
	case "":
		return request.StoredFrom(ctx), request.Stamps(ctx).Unsent()
	case "binding":
		own = []relay.Stamp{{Hop: relay.ServerBound, At: clock.Now()}}
	}
	return request.Stored{Namespace: info.Namespace, Name: info.Name}, own
}

// ServeTrace answers with the trace of the pod in the path.
func ServeTrace(ring *trace.Ring) gin.HandlerFunc {
	return func(c *gin.Context) {
		namespace, name, ok := tracedPod(c.Request.URL.Path)
		if !ok {
			fail(c, apierrors.NewNotFound(schema.GroupResource{Resource: "traces"}, c.Request.URL.Path))
			return
		}
		found, ok := ring.Trace(namespace, name)
		if !ok {
			fail(c, apierrors.NewNotFound(schema.GroupResource{Resource: "traces"}, namespace+"/"+name))
			return
		}
		c.Header("Content-Type", "application/json")
		_ = json.NewEncoder(c.Writer).Encode(found)
	}
}
