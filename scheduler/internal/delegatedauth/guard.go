package delegatedauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/rest"
)

// authenticator knows one kind of credential. It returns false without an error if the request
// has no credential of its kind, and an error if it has a bad one.
type authenticator interface {
	Authenticate(r *http.Request) (user *authenticationv1.UserInfo, ok bool, err error)
}

// Guard finds out who makes a request and asks whether they may.
type Guard struct {
	options        *Options
	client         *rest.Client
	trust          *trust
	authenticators []authenticator
	reviews        *reviews
	logger         *zap.Logger
}

// New reads the files that the options name. The clients ask about authentication and about authorization.
func New(o *Options, authentication, authorization *rest.Client, clock clock.Clock, logger *zap.Logger) (*Guard, error) {
	trust, err := newTrust(o, clock, logger)
	if err != nil {
		return nil, err
	}
	reviews := newReviews(o, authentication, authorization, clock)
	return &Guard{
		options: o, client: authentication, trust: trust, reviews: reviews,
		authenticators: []authenticator{&trust.proxies, &trust.clients, reviews},
		logger: logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(core, time.Minute, 10, 0) // strangers cause the lines
		})),
	}, nil
}

// Authorities are those of the certificates that clients are asked for, for pki.TakeClients.
func (g *Guard) Authorities() []func() []byte {
	return []func() []byte{g.trust.clients.PEM, g.trust.proxies.PEM}
}

// LookUp reads the cluster's authorities for the first time, if flags don't name all. That it
// can't is an error only if the options say so.
func (g *Guard) LookUp(ctx context.Context) error {
	if !g.trust.lookUp() {
		return nil
	}
	err := g.trust.read(ctx, g.client)
	if err != nil && g.options.TolerateLookupFailure && ctx.Err() == nil {
		g.logger.Warn("the authorities of the cluster's clients can't be looked up; until they can, their certificates count as none (to end "+
			"instead: --authentication-tolerate-lookup-failure=false)", zap.Error(err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up the authorities of the cluster's clients: %w", err)
	}
	return nil
}

// Run follows changes of the cluster's authorities until ctx ends. LookUp has returned.
func (g *Guard) Run(ctx context.Context) error {
	if !g.trust.lookUp() {
		return nil
	}
	return g.trust.follow(ctx, g.client)
}

// Protect returns next for those who may use it.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, err := g.authenticate(r)
		if r.ProtoMajor == 2 && (err != nil || user.Username == core.UserAnonymous) {
			// One connection can carry many requests at once. Strangers get one request per
			// connection, as with upstream (CVE-2023-44487).
			w.Header().Set("Connection", "close")
		}
		if err != nil {
			g.logger.Info("authentication failed", zap.Error(err), zap.String("remote", r.RemoteAddr), zap.String("uri", r.URL.Path))
			refuse(w, apierrors.NewUnauthorized("Unauthorized")) // why is not for strangers
			return
		}
		if user.Username != core.UserAnonymous {
			daemon.OwnConnection(r.Context(), user.Username)
		}
		if err := g.authorize(r, user); err != nil {
			refuse(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// authenticate tries the kinds of credentials in upstream's order. A bad one does not end the
// search, but is nobody's: the client is anonymous only if it has shown none.
func (g *Guard) authenticate(r *http.Request) (*authenticationv1.UserInfo, error) {
	var failures []error
	for _, a := range g.authenticators {
		user, ok, err := a.Authenticate(r)
		if ok {
			return authenticated(user), nil
		}
		failures = append(failures, err)
	}
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	return &authenticationv1.UserInfo{Username: core.UserAnonymous, Groups: []string{core.GroupUnauthenticated}}, nil
}

// authenticated adds the group of all whose name is known to a copy, because users are shared.
func authenticated(user *authenticationv1.UserInfo) *authenticationv1.UserInfo {
	if user.Username == core.UserAnonymous || slices.Contains(user.Groups, core.GroupAuthenticated) ||
		slices.Contains(user.Groups, core.GroupUnauthenticated) {
		return user
	}
	with := *user
	with.Groups = append(slices.Clone(user.Groups), core.GroupAuthenticated)
	return &with
}

// authorize returns nil if the user may make the request. Those who may do everything anyway
// need not be asked about.
func (g *Guard) authorize(r *http.Request, user *authenticationv1.UserInfo) *apierrors.StatusError {
	if slices.Contains(user.Groups, core.GroupMasters) || g.isOpen(r.URL.Path) {
		return nil
	}
	verb := strings.ToLower(r.Method)
	allowed, reason, err := g.reviews.May(r.Context(), user, verb, r.URL.Path)
	switch {
	case err != nil:
		g.logger.Warn("authorization failed: the API server could not be asked, or refused to say", zap.Error(err))
		return apierrors.NewInternalError(errors.New("the API server could not be asked whether this is allowed"))
	case allowed:
		return nil
	}
	message := fmt.Sprintf("forbidden: User %q cannot %s path %q", user.Username, verb, r.URL.Path)
	if reason != "" {
		message += ": " + reason
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReasonForbidden,
		Message: message,
		Details: &metav1.StatusDetails{},
	}}
}

// isOpen reports whether a path needs no authorization. A slash at its beginning is optional in
// the option, as upstream has it.
func (g *Guard) isOpen(path string) bool {
	path = strings.TrimPrefix(path, "/")
	return slices.ContainsFunc(g.options.AlwaysAllowPaths, func(open string) bool {
		prefix, all := strings.CutSuffix(strings.TrimPrefix(open, "/"), "*")
		return path == prefix && !all || all && strings.HasPrefix(path, prefix)
	})
}

// refuse answers with a metav1.Status, which clients of the API show to their users.
func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(&status)
}
