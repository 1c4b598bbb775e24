package filters

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/request"
)

// auditKey is the context key of a request's audit state.
const auditKey = "audited"

// AuditRefused comes before authentication and records requests that fail it:
// they have no user by which the policy could select them.
func AuditRefused(a *audit.Auditor) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Request = c.Request.WithContext(audit.WithEarly(c.Request.Context()))
		c.Next()
		if c.GetBool(auditKey) || c.Writer.Status() != http.StatusUnauthorized {
			return
		}
		if record := a.Begin(c.Request, nil); record != nil {
			record.Stage(audit.ResponseStarted, func(e *audit.Event) {
				status := apierrors.NewUnauthorized("Unauthorized").Status()
				e.ResponseStatus = &status
				record.Answered(e, audit.StatusBody(status))
			})
		}
	}
}

// Audit comes after authentication and records requests and their outcome.
func Audit(a *audit.Auditor, clock clock.PassiveClock) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Set(auditKey, true)
		ctx := c.Request.Context()
		user := request.UserFrom(ctx)
		record := a.Begin(c.Request, user)
		if record == nil {
			c.Next()
			return
		}
		info := request.InfoFrom(ctx)
		if !record.Stage(audit.RequestReceived, nil) {
			fail(c, apierrors.NewInternalError(errors.New("the request could not be written to the audit log")))
			return
		}
		w := &auditWriter{
			ResponseWriter: c.Writer, gin: c, user: user, record: record, clock: clock, stream: info.LongRunning(),
			keep:          (info.Resource || describesAPI(info.Path)) && !info.LongRunning(),
			answersStatus: answersStatus(info) && !info.LongRunning(),
		}
		c.Writer = w
		c.Request = c.Request.WithContext(audit.With(ctx, record))
		defer func() {
			if cause := recover(); cause != nil {
				w.panicked(cause)
				panic(cause)
			}
		}()
		c.Next()
		w.complete()
	}
}

// auditWriter observes the answer on its way to the client.
type auditWriter struct {
	gin.ResponseWriter
	gin    *gin.Context
	user   *request.User
	record *audit.Record
	clock  clock.PassiveClock
	stream bool
	keep   bool // the body of the answer, if the policy does
	// answersStatus: the answer is a Status also where all went well.
	answersStatus bool
	body          audit.Body

	begun    bool
	switched bool // to another protocol
}

// Unwrap lets http.ResponseController reach the connection.
func (w *auditWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// panicked records why the request got no answer.
func (w *auditWriter) panicked(cause any) {
	w.record.Stage(audit.Panic, func(e *audit.Event) {
		w.identify(e)
		e.ResponseStatus = &metav1.Status{
			Code: http.StatusInternalServerError, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
			Message: fmt.Sprintf("APIServer panic'd: %v", cause),
		}
	})
}

// identify records the impersonated user, if there is one.
func (w *auditWriter) identify(e *audit.Event) {
	if as := request.UserFrom(w.gin.Request.Context()); as != w.user {
		e.ImpersonatedUser = as
	}
}

func (w *auditWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	w.body.ContentType, w.body.Coding = w.Header().Get("Content-Type"), w.Header().Get("Content-Encoding")
	if w.stream {
		w.record.Stage(audit.ResponseStarted, w.outcome)
	}
}

func (w *auditWriter) code() int {
	if w.switched {
		return http.StatusSwitchingProtocols
	}
	return w.Status()
}

// keeps reports whether the answer's body is needed: events of any level
// contain a Status, which is short.
func (w *auditWriter) keeps() bool {
	return w.keep && w.record.Level().AtLeast(audit.RequestResponse) || w.answersStatus || w.Status() >= http.StatusBadRequest
}

// answersStatus reports whether a successful answer may be a Status: to deletions,
// bindings and evictions.
func answersStatus(info *request.Info) bool {
	switch info.Verb {
	case "delete", "deletecollection":
		return true
	case "create":
		return info.Subresource == "binding" || info.Subresource == "eviction" || info.ResourceName == "bindings"
	}
	return false
}

func (w *auditWriter) complete() {
	w.begin()
	if !w.stream { // streams always take long
		w.record.Slow(w.gin.Request.Context())
	}
	w.record.Stage(audit.ResponseComplete, func(e *audit.Event) {
		w.outcome(e)
		if w.keep {
			w.record.Answered(e, &w.body)
		}
	})
}

// outcome is what came of the request, as far as it is known: the Status that was
// answered, where one was.
func (w *auditWriter) outcome(e *audit.Event) {
	w.identify(e)
	e.ResponseStatus = &metav1.Status{Code: int32(w.code())}
	var status metav1.Status
	if json.Unmarshal(w.body.JSON(false), &status) == nil && status.Kind == "Status" {
		status.TypeMeta, status.Code = metav1.TypeMeta{}, int32(w.code())
		e.ResponseStatus = &status
		w.record.Answered(e, &w.body)
	}
}

func (w *auditWriter) WriteHeaderNow() {
	w.begin()
	w.ResponseWriter.WriteHeaderNow()
}

func (w *auditWriter) Write(b []byte) (int, error) {
	if w.keeps() {
		_, _ = w.body.Write(b) // never fails
	}
	w.begin() // knows what an answer that is a Status says
	return w.timed(func() (int, error) { return w.ResponseWriter.Write(b) })
}

func (w *auditWriter) WriteString(s string) (int, error) {
	if w.keeps() {
		_, _ = w.body.Write([]byte(s)) // never fails
	}
	w.begin()
	return w.timed(func() (int, error) { return w.ResponseWriter.WriteString(s) })
}

// timed measures how long the client takes to accept the answer.
func (w *auditWriter) timed(write func() (int, error)) (int, error) {
	began := w.clock.Now()
	defer func() { request.Spent(w.gin.Request.Context(), request.Writing, w.clock.Since(began)) }()
	return write()
}

func (w *auditWriter) Flush() {
	w.begin()
	w.ResponseWriter.Flush()
}

func (w *auditWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.switched = true
	w.begin()
	return w.ResponseWriter.Hijack()
}

// describesAPI reports whether a path is a discovery document, which is
// recorded like an object.
func describesAPI(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "api" || first == "apis"
}

// AuditAdmission is the last plugin of the admission chain. It records the name
// of the created object in the audit event, because the server may have
// generated it.
type AuditAdmission struct{}

// Handles implements admission.Plugin.
func (AuditAdmission) Handles(op admission.Operation) bool { return op == admission.Create }

// Validate implements admission.Validator; it refuses nothing.
func (AuditAdmission) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Object != nil {
		audit.Named(ctx, a.Namespace, a.Object.GetName())
	}
	return nil
}
