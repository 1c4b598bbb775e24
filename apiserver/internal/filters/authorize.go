package filters

import (
	"errors"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
	"kctl/proto/relay"
	"kctl/proto/tracing"
)

// Authorize lets allowed requests through, and answers 403 to the others.
func Authorize(authorizer authz.Authorizer, registry prometheus.Registerer, clock clock.PassiveClock, logger *zap.Logger) gin.HandlerFunc {
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "authorization_attempts_total",
		Help: "Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or 'error'.",
	}, []string{"result"})
	registry.MustRegister(attempts)
	duration := newDurations("authorization", "Authorization duration in seconds broken out by result.", registry)
	allowed, tookToAllow := attempts.WithLabelValues("allowed"), duration.WithLabelValues("allowed")
	return func(c *gin.Context) {
		ctx := c.Request.Context()
		attributes := attributesOf(request.UserFrom(ctx), request.InfoFrom(ctx))
		asking, asked := tracing.Step(ctx, "authorization")
		began := clock.Now()
		decision, reason, err := authorizer.Authorize(asking, attributes)
		took := clock.Since(began)
		request.Spent(ctx, request.Authorization, took)
		if decision == authz.Allow {
			allowed.Inc()
			tookToAllow.Observe(took.Seconds())
		} else {
			result := refusal(decision, err)
			attempts.WithLabelValues(result).Inc()
			duration.WithLabelValues(result).Observe(took.Seconds())
		}
		tracing.End(asked, err)
		audit.Annotate(ctx, "authorization.k8s.io/decision", word(decision))
		audit.Annotate(ctx, "authorization.k8s.io/reason", reason)
		switch {
		case decision == authz.Allow:
			request.Stamps(ctx).Stamp(relay.ServerAuthorized, clock.Now())
			c.Next()
		case err != nil:
			logger.Log(severity(err), "authorization failed", zap.Error(err), zap.String("user", attributes.User.Username),
				zap.String("uri", c.Request.URL.Path))
			fail(c, err)
		default:
			logger.Debug("forbidden", zap.String("user", attributes.User.Username), zap.String("verb", attributes.Verb),
				zap.String("uri", c.Request.URL.Path), zap.String("reason", reason))
			fail(c, authz.Forbidden(attributes, reason))
		}
	}
}

// refusal is the metrics' name for an authorization that failed or denied.
func refusal(decision authz.Decision, err error) string {
	switch {
	case err != nil:
		return "error"
	case decision == authz.Deny:
		return "denied"
	}
	return "no-opinion"
}

// severity is the log level of an authorizer's error: that clients are told to
// retry while the server starts is no cause for concern.
func severity(err error) zapcore.Level {
	if errors.Is(err, authz.ErrStarting) {
		return zapcore.DebugLevel
	}
	return zapcore.ErrorLevel
}

// word is a decision as audit events name it.
func word(d authz.Decision) string {
	if d == authz.Allow {
		return "allow"
	}
	return "forbid"
}

// attributesOf are the attributes of the request; a user who may get a pod may
// also see its trace.
func attributesOf(user *request.User, info *request.Info) *authz.Attributes {
	namespace, name, ok := tracedPod(info.Path)
	if !ok {
		return &authz.Attributes{User: user, Info: *info}
	}
	return &authz.Attributes{User: user, Info: request.Info{
		Resource: true, Path: info.Path, Verb: info.Verb,
		APIPrefix: "api", APIVersion: core.Pods.Version, ResourceName: core.Pods.Name,
		Namespace: namespace, Name: name,
	}}
}

// tracedPod returns the pod's name in the path of a trace. No pod has a name that does not pass
// validation, and what servers ask each other for is written to etcd.
func tracedPod(path string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/debug/relay/namespaces/")
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, "/pods/")
	if !ok || relay.Path(namespace, name) != path || len(validation.IsDNS1123Label(namespace)) > 0 ||
		len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", "", false
	}
	return namespace, name, true
}
