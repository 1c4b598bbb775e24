package filters

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/relaystamps"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/relay"
)

// Relay keeps the stamps that come with successful requests about pods, and the
// server's own stamps of those requests.
//
// The stamps that come along are only taken from requests that can know of their hops: kctl's
// from the one that creates the pod, by whatever verb; the scheduler's from the Binding, of which
// only one succeeds; the kubelet's, and what it tells of restarts, from a node's writing of a status,
// which admission lets it do for its own pods.
func Relay(ring *relaystamps.Ring, logger *zap.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		info := request.InfoFrom(c.Request.Context())
		sender := senderOf(info)
		c.Next()
		if sender == "" || c.Writer.Status() >= http.StatusBadRequest {
			return
		}
		ctx := c.Request.Context()
		pod := request.WrittenFrom(ctx)
		if pod.UID == "" || sender == fromClient && !pod.Created {
			return
		}
		var report relay.Report
		stampHeader, restartHeader := c.GetHeader(relay.Header), c.GetHeader(relay.RestartHeader)
		if (stampHeader != "" || restartHeader != "") && mayStamp(sender, request.UserFrom(ctx)) {
			sent, err := decode(stampHeader, restartHeader)
			if err != nil {
				logger.Debug("relay stamps ignored", daemon.PodKey(pod.Namespace, pod.Name, types.UID(pod.UID)), zap.Error(err))
			}
			report = relaystamps.Accept(sent, sender, pod.Born, request.ReceivedFrom(ctx))
		}
		stamps := report.Stamps
		switch sender {
		case fromClient:
			stamps = append(stamps, request.Stamps(ctx).Unsent()...)
		case fromScheduler:
			stamps = append(stamps, relay.Stamp{Hop: relay.ServerBound, At: pod.At})
		}
		if len(stamps) > 0 {
			ring.Add(pod.Namespace, pod.Name, pod.UID, stamps...)
		}
		if len(report.Restarts) > 0 {
			ring.AddRestarts(pod.Namespace, pod.Name, pod.UID, report.Restarts...)
		}
	}
}

// decode reads the headers of a request, each whatever the other has.
func decode(stamps, restarts string) (relay.Report, error) {
	sent, err := relay.Decode(stamps)
	again, restartErr := relay.DecodeRestarts(restarts)
	return relay.Report{Stamps: sent, Restarts: again}, errors.Join(err, restartErr)
}

// The programs that send stamps, as hops name them.
const (
	fromClient    = "kctl"
	fromScheduler = "scheduler"
	fromKubelet   = "kubelet"
)

// senderOf is the program whose hops a request may tell of: one that may create a pod, binds it, or
// writes its status; "" for any other.
func senderOf(info *request.Info) string {
	if !info.Resource || info.APIGroup != "" || info.ResourceName != core.Pods.Name || !info.Mutating() ||
		strings.HasPrefix(info.Verb, "delete") {
		return ""
	}
	switch info.Subresource {
	case "":
		return fromClient
	case "binding":
		return fromScheduler
	case "status":
		return fromKubelet
	}
	return ""
}

// mayStamp reports whether a user may tell of a program's hops, being able to make its request.
// Writing the status of pods is a right that others than kubelets have, too.
func mayStamp(program string, user *request.User) bool {
	if program != fromKubelet {
		return true
	}
	return user != nil && (slices.Contains(user.Groups, core.GroupNodes) || slices.Contains(user.Groups, core.GroupMasters))
}

// ServeRelay answers with the trace of the pod in the path, and with an empty one if nothing is known
// of it: which servers know nothing tells something, too.
func ServeRelay(exchange *relaystamps.Exchange) gin.HandlerFunc {
	return func(c *gin.Context) {
		namespace, name, ok := tracedPod(c.Request.URL.Path)
		if !ok {
			fail(c, apierrors.NewNotFound(schema.GroupResource{Resource: "traces"}, c.Request.URL.Path))
			return
		}
		c.Header("Content-Type", "application/json")
		_ = json.NewEncoder(c.Writer).Encode(exchange.Trace(c.Request.Context(), namespace, name))
	}
}
