package filters

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
)

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clk   = testingclock.NewFakePassiveClock(start)
)

// chain serves handler behind filters at every path.
func chain(handler gin.HandlerFunc, filters ...gin.HandlerFunc) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.Use(append([]gin.HandlerFunc{Begin(clk)}, filters...)...)
	router.NoRoute(handler)
	return router
}

func serve(handler http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func statusOf(t *testing.T, w *httptest.ResponseRecorder) metav1.Status {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || status.Kind != "Status" || int(status.Code) != w.Code {
		t.Fatalf("%d is not a Status: %s (%v)", w.Code, w.Body, err)
	}
	return status
}

func ok(c *gin.Context) { c.String(http.StatusOK, "ok") }

func as(user string, groups ...string) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Request = c.Request.WithContext(request.WithUser(c.Request.Context(), &request.User{Username: user, Groups: groups}))
		c.Next()
	}
}

func TestBeginKeepsAnAuditIDOfReasonableLength(t *testing.T) {
	handler := chain(ok)
	if got := serve(handler, "GET", "/", "Audit-Id", "mine").Header().Get("Audit-Id"); got != "mine" {
		t.Errorf("got %q", got)
	}
	if got := serve(handler, "GET", "/", "Audit-Id", strings.Repeat("x", maxAuditID+1)).Header().Get("Audit-Id"); len(got) > maxAuditID || got == "" {
		t.Errorf("got %q", got)
	}
}

func TestRecover(t *testing.T) {
	core, lines := observer.New(zapcore.ErrorLevel)
	handler := chain(func(*gin.Context) { panic("oh no") }, Recover(zap.New(core)))
	w := serve(handler, "GET", "/api/v1/pods")
	if status := statusOf(t, w); status.Reason != metav1.StatusReasonInternalError || strings.Contains(status.Message, "oh no") {
		t.Errorf("%+v", status)
	}
	if lines.Len() != 1 {
		t.Errorf("%d log lines", lines.Len())
	}
}

func TestRecoverBreaksOffAnAnswerThatHasBegun(t *testing.T) {
	handler := chain(func(c *gin.Context) {
		c.String(http.StatusOK, "half")
		panic("oh no")
	}, Recover(zap.NewNop()))
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("the connection was not broken off: %v", err)
		}
	}()
	serve(handler, "GET", "/")
}

func TestWarnings(t *testing.T) {
	handler := chain(func(c *gin.Context) {
		request.Warn(c.Request.Context(), `says "old"`)
		request.Warn(c.Request.Context(), "two\nlines")
		request.Warn(c.Request.Context(), strings.Repeat("é", maxAllWarnings))
		ok(c)
	}, Warnings())
	got := serve(handler, "GET", "/").Header().Values("Warning")
	if len(got) != 3 || got[0] != `299 - "says \"old\""` || got[1] != `299 - "two lines"` || len(got[2]) > maxWarning+10 {
		t.Errorf("got %q", got)
	}
}

// TestWarningsAreReadAsTheyWereMeant: clients get a warning's text unchanged,
// except for characters that no header may contain.
func TestWarningsAreReadAsTheyWereMeant(t *testing.T) {
	want := map[string]string{
		"größer als 世界 👍":    "größer als 世界 👍",
		`a "quoted" C:\path`: `a "quoted" C:\path`,
		"zero\u200bwidth":    "zero\u200bwidth",
		"no\u00a0break":      "no\u00a0break",
		"a\x00b\tc\r\nd\x7f": "a b c  d ",
		"next\u0085line":     "next line",
		"not \xff UTF-8":     "not \ufffd UTF-8",
	}
	for said, want := range want {
		handler := chain(func(c *gin.Context) {
			request.Warn(c.Request.Context(), said)
			ok(c)
		}, Warnings())
		got, errs := utilnet.ParseWarningHeaders(serve(handler, "GET", "/").Header().Values("Warning"))
		if len(errs) > 0 || len(got) != 1 || got[0].Text != want {
			t.Errorf("%q: %+v %v", said, got, errs)
		}
	}
}

func TestWarningsOfAnAnswerWithoutBody(t *testing.T) {
	handler := chain(func(c *gin.Context) {
		request.Warn(c.Request.Context(), "careful")
		c.Status(http.StatusNoContent)
	}, Warnings())
	if w := serve(handler, "GET", "/"); w.Code != http.StatusNoContent || len(w.Header().Values("Warning")) != 1 {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

type authorizer struct {
	decision authz.Decision
	err      error
	asked    *authz.Attributes
}

func (a *authorizer) Authorize(_ context.Context, at *authz.Attributes) (authz.Decision, string, error) {
	a.asked = at
	return a.decision, "because", a.err
}

func TestAuthorize(t *testing.T) {
	tests := map[string]struct {
		a      authorizer
		code   int
		errors int // in the log
	}{
		"allowed":    {authorizer{decision: authz.Allow}, 200, 0},
		"denied":     {authorizer{decision: authz.Deny}, 403, 0},
		"no opinion": {authorizer{decision: authz.NoOpinion}, 403, 0},
		"broken":     {authorizer{decision: authz.NoOpinion, err: errors.New("broken")}, 500, 1},
		"starting":   {authorizer{decision: authz.NoOpinion, err: errors.Join(authz.ErrStarting)}, 503, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			core, lines := observer.New(zap.InfoLevel)
			w := serve(chain(ok, as("jane"), Authorize(&test.a, prometheus.NewRegistry(), clk, zap.New(core))), "GET", "/api/v1/namespaces/shop/pods")
			if w.Code != test.code || lines.Len() != test.errors {
				t.Errorf("got %d %s, %d lines", w.Code, w.Body, lines.Len())
			}
		})
	}
}

func TestATraceIsAskedForLikeItsPod(t *testing.T) {
	a := &authorizer{decision: authz.Allow}
	handler := chain(ok, as("jane"), Authorize(a, prometheus.NewRegistry(), clk, zap.NewNop()))
	serve(handler, "GET", "/debug/relay/namespaces/shop/pods/web")
	if i := a.asked.Info; !i.Resource || i.Verb != "get" || i.ResourceName != "pods" || i.Namespace != "shop" || i.Name != "web" {
		t.Errorf("%+v", i)
	}
	for _, path := range []string{"/debug/relay/namespaces/shop/pods/", "/debug/relay/namespaces/shop/pods/web/x", "/debug/relay",
		"/debug/relay/namespaces/a/b/pods/web",
		"/debug/relay/namespaces/shop/pods/" + strings.Repeat("x", 254), "/debug/relay/namespaces/" + strings.Repeat("x", 64) + "/pods/web",
		"/debug/relay/namespaces/shop/pods/%ff"} {
		if serve(handler, "GET", path); a.asked.Info.Resource {
			t.Errorf("%s counts as a pod: %+v", path, a.asked.Info)
		}
	}
}

func TestInFlight(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	slow := func(c *gin.Context) {
		if c.Query("slow") != "" {
			inside <- struct{}{}
			<-release
		}
		ok(c)
	}
	limited := InFlight(1, 1, prometheus.NewRegistry())
	jane, root := chain(slow, as("jane"), limited), chain(slow, as("root", "system:masters"), limited)
	done := make(chan struct{})
	go func() { defer close(done); serve(jane, "GET", "/api/v1/pods?slow=1") }()
	<-inside
	w := serve(jane, "GET", "/api/v1/pods")
	if status := statusOf(t, w); status.Reason != metav1.StatusReasonTooManyRequests || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%+v %v", status, w.Header())
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"a writer":              serve(jane, "POST", "/api/v1/namespaces/a/pods"),
		"a watch":               serve(jane, "GET", "/api/v1/pods?watch=1"),
		"a log":                 serve(jane, "GET", "/api/v1/namespaces/a/pods/p/log"),
		"one of system:masters": serve(root, "GET", "/api/v1/pods"),
		"a node's lease": serve(chain(slow, as("system:node:n1", "system:nodes"), limited), "GET",
			"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"),
		"a leader's lease": serve(chain(slow, as("system:kube-scheduler"), limited), "GET",
			"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"),
	} {
		if w.Code != http.StatusOK {
			t.Errorf("%s has to wait for a reader: %d", name, w.Code)
		}
	}
	close(release)
	<-done
	if w := serve(jane, "GET", "/api/v1/pods"); w.Code != http.StatusOK {
		t.Errorf("after the slow one has left: %d", w.Code)
	}
}

func TestDeadline(t *testing.T) {
	draining, drain := context.WithCancel(t.Context())
	var deadline time.Time
	var limited bool
	handler := chain(func(c *gin.Context) {
		deadline, limited = c.Request.Context().Deadline()
		if c.Query("wait") != "" {
			<-c.Request.Context().Done()
			return
		}
		ok(c)
	}, Deadline(time.Minute, draining))

	before := time.Now()
	if serve(handler, "GET", "/api/v1/pods"); !limited || deadline.Before(before.Add(time.Minute)) {
		t.Errorf("deadline %v (%v)", deadline, limited)
	}
	if serve(handler, "GET", "/api/v1/pods?timeout=10h"); !limited || deadline.After(time.Now().Add(time.Minute)) {
		t.Errorf("a client gave itself until %v", deadline)
	}
	if status := statusOf(t, serve(handler, "GET", "/api/v1/pods?timeout=1ms&wait=1")); status.Reason != metav1.StatusReasonTimeout {
		t.Errorf("%+v", status)
	}
	if status := statusOf(t, serve(handler, "GET", "/api/v1/pods?timeout=soon")); status.Reason != metav1.StatusReasonBadRequest {
		t.Errorf("%+v", status)
	}
	if serve(handler, "GET", "/api/v1/pods?watch=1&timeout=1ms"); limited {
		t.Error("a watch has a deadline")
	}
	drain()
	done := make(chan struct{})
	go func() { defer close(done); serve(handler, "GET", "/api/v1/pods?watch=1&wait=1") }()
	select {
	case <-done:
	case <-time.After(time.Minute): // only a failure takes that long
		t.Error("a watch outlived the drain")
	}
}

func TestObserveLogsOneLine(t *testing.T) {
	core, lines := observer.New(zapcore.DebugLevel)
	handler := chain(func(c *gin.Context) { c.Status(http.StatusTeapot) }, Observe(prometheus.NewRegistry(), clk, noneServed, zap.New(core)), as("jane"))
	serve(handler, "GET", "/api/v1/pods?limit=1", "User-Agent", "kubectl")
	if lines.Len() != 1 {
		t.Fatalf("%d lines", lines.Len())
	}
	fields := lines.All()[0].ContextMap()
	for key, want := range map[string]any{"verb": "list", "uri": "/api/v1/pods?limit=1", "code": int64(418), "user": "jane", "userAgent": "kubectl"} {
		if fields[key] != want {
			t.Errorf("%s is %v, want %v", key, fields[key], want)
		}
	}
}
