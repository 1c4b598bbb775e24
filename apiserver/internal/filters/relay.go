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

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/trace"
	"kctl/proto/core"
	"kctl/proto/relay"
)

type tracedKey struct{}

// traced is the pod that a request turned out to be about.
type traced struct{ namespace, name, uid string }

// Relay keeps the stamps that come with requests about pods, and the server's
// own of those requests, once they have succeeded.
func Relay(ring *trace.Ring, clock clock.PassiveClock, logger *zap.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		info := request.InfoFrom(c.Request.Context())
		if !aboutPod(info) || c.Query("dryRun") != "" {
			c.Next()
			return
		}
		pod := &traced{namespace: info.Namespace, name: info.Name}
		c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), tracedKey{}, pod))
		sent, err := relay.Decode(c.GetHeader(relay.Header))
		if err != nil {
			logger.Debug("relay stamps ignored", zap.Error(err), zap.String("pod", info.Namespace+"/"+info.Name))
		}
		c.Next()
		if c.Writer.Status() >= http.StatusBadRequest || pod.name == "" {
			return
		}
		ring.Add(pod.namespace, pod.name, pod.uid, append(sent, own(c.Request.Context(), info, clock)...)...)
	}
}

// aboutPod: creating it, binding it, and telling its status.
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

// own are the server's stamps of the request: all of a create's, and the end
// of a binding.
func own(ctx context.Context, info *request.Info, clock clock.PassiveClock) []relay.Stamp {
	now := clock.Now()
	switch info.Subresource {
	case "":
		stamps := request.Stamps(ctx)
		stamps.Stamp(relay.ServerStored, now)
		return stamps.Unsent()
	case "binding":
		return []relay.Stamp{{Hop: relay.ServerBound, At: now}}
	}
	return nil
}

// RelayAdmission stands last in the admission chain and notes when a pod was
// through it, and which pod it is: its name may have been made up by the
// server.
type RelayAdmission struct{ Clock clock.PassiveClock }

// Handles implements admission.Plugin.
func (RelayAdmission) Handles(op admission.Operation) bool { return op == admission.Create }

// Validate implements admission.Validator; it refuses nothing.
func (p RelayAdmission) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, ok := ctx.Value(tracedKey{}).(*traced)
	if !ok || a.Object == nil || a.Subresource != "" || a.Resource.Name != core.Pods.Name {
		return nil
	}
	pod.namespace, pod.name, pod.uid = a.Object.GetNamespace(), a.Object.GetName(), string(a.Object.GetUID())
	request.Stamps(ctx).Stamp(relay.ServerAdmitted, p.Clock.Now())
	return nil
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
