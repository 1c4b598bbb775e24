package filters

import (
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/request"
	"kctl/proto/clientauth"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/relay"
)

// Authenticate finds out who makes the request, or answers 401. It removes the
// credentials: handlers that forward requests must not forward a token, nor
// forged headers in which proxies name users.
func Authenticate(authenticator authn.Authenticator, headers []clientauth.HeaderNames, registry prometheus.Registerer,
	clock clock.PassiveClock, logger *zap.Logger) gin.HandlerFunc {
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "authentication_attempts", Help: "Counter of authenticated attempts.",
	}, []string{"result"})
	duration := newDurations("authentication", "Authentication duration in seconds broken out by result.", registry)
	users := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "authenticated_user_requests",
		Help: "Counter of authenticated requests broken out by username, if it is one of those that every cluster has.",
	}, []string{"username"})
	registry.MustRegister(attempts, users)
	succeeded, tookToSucceed := attempts.WithLabelValues("success"), duration.WithLabelValues("success")
	logger = sampled(logger)
	return func(c *gin.Context) {
		began := clock.Now()
		user, ok, err := authenticator.Authenticate(c.Request)
		took := clock.Since(began)
		request.Spent(c.Request.Context(), request.Authentication, took)
		if c.Request.ProtoMajor == 2 && (!ok || user.Username == core.UserAnonymous) {
			// One connection can carry many requests at once. Unauthenticated clients
			// get one request per connection, as with upstream (CVE-2023-44487).
			c.Header("Connection", "close")
		}
		if err != nil || !ok {
			result := "failure"
			if err != nil {
				result = "error"
				logger.Info("authentication failed", zap.Error(err), zap.String("remote", c.Request.RemoteAddr), zap.String("uri", c.Request.URL.Path))
			}
			attempts.WithLabelValues(result).Inc()
			duration.WithLabelValues(result).Observe(took.Seconds())
			fail(c, apierrors.NewUnauthorized("Unauthorized"))
			return
		}
		succeeded.Inc()
		tookToSucceed.Observe(took.Seconds())
		users.WithLabelValues(shortOf(user.Username)).Inc()
		if user.Username != core.UserAnonymous {
			daemon.OwnConnection(c.Request.Context(), user.Username)
		}
		authn.RemoveTokens(c.Request.Header)
		for _, names := range headers {
			names.Remove(c.Request.Header)
		}
		ctx := c.Request.Context()
		request.Stamps(ctx).Stamp(relay.ServerAuthenticated, clock.Now())
		c.Request = c.Request.WithContext(request.WithUser(ctx, user))
		c.Next()
	}
}

// shortOf is upstream's label for a user: few values, and no person's name.
func shortOf(username string) string {
	switch username {
	case "admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default":
		return username
	}
	if strings.Contains(username, "@") {
		return "email_id"
	}
	return "other"
}

// sampled keeps unauthenticated clients from filling the log: ten lines a
// second, then one in a hundred.
func sampled(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Second, 10, 100)
	}))
}
