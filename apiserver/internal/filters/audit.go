package filters

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		c.Next()
		if c.GetBool(auditKey) || c.Writer.Status() != http.StatusUnauthorized {
			return
		}
		if record := a.Begin(c.Request, nil); record != nil {
			record.Stage(audit.ResponseStarted, func(e *audit.Event) {
				status := apierrors.NewUnauthorized("Unauthorized").Status()
				e.ResponseStatus = &status
			})
		}
	}
}

// Audit comes after authentication and records requests and their outcome.
func Audit(a *audit.Auditor) gin.HandlerFunc {
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
			ResponseWriter: c.Writer, gin: c, user: user, record: record, stream: info.LongRunning(),
			keep: record.Level().AtLeast(audit.RequestResponse) && info.Resource && !info.LongRunning(),
		}
		asked := &audit.Body{ContentType: c.GetHeader("Content-Type")}
		if record.Level().AtLeast(audit.Request) && info.Resource && !info.LongRunning() && c.Request.Body != nil {
			c.Request.Body = readAlong{io.TeeReader(c.Request.Body, asked), c.Request.Body}
		}
		c.Writer = w
		c.Request = c.Request.WithContext(audit.With(ctx, record))
		defer func() {
			if cause := recover(); cause != nil {
				record.Stage(audit.Panic, func(e *audit.Event) {
					w.identify(e)
					e.ResponseStatus = &metav1.Status{
						Code: http.StatusInternalServerError, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
						Message: fmt.Sprintf("APIServer panic'd: %v", cause),
					}
				})
				panic(cause)
			}
		}()
		c.Next()
		w.complete(asked)
	}
}

type readAlong struct {
	io.Reader
	io.Closer
}

// auditWriter observes the answer on its way to the client.
type auditWriter struct {
	gin.ResponseWriter
	gin    *gin.Context
	user   *request.User
	record *audit.Record
	stream bool
	keep   bool // the body of the answer
	body   audit.Body

	begun    bool
	switched bool // to another protocol
}

// Unwrap lets http.ResponseController reach the connection.
func (w *auditWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

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
	w.body.ContentType = w.Header().Get("Content-Type")
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

// keeps reports whether the answer's body is kept: a Status is short and
// becomes part of the event.
func (w *auditWriter) keeps() bool {
	return w.keep || w.gin.Request.Method == http.MethodDelete || w.Status() >= http.StatusBadRequest
}

func (w *auditWriter) complete(asked *audit.Body) {
	w.begin()
	answered := &w.body
	if !w.keep {
		answered = nil
	}
	objects := w.record.Objects(asked, answered)
	w.record.Stage(audit.ResponseComplete, func(e *audit.Event) {
		w.outcome(e)
		objects(e)
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
	return w.ResponseWriter.Write(b)
}

func (w *auditWriter) WriteString(s string) (int, error) {
	if w.keeps() {
		_, _ = w.body.Write([]byte(s)) // never fails
	}
	w.begin()
	return w.ResponseWriter.WriteString(s)
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

// AuditAdmission is last in the admission chain and records the object in the
// audit event: the server may have generated its name.
type AuditAdmission struct{}

// Handles implements admission.Plugin.
func (AuditAdmission) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate implements admission.Validator; it refuses nothing.
func (AuditAdmission) Validate(ctx context.Context, a *admission.Attributes) error {
	switch {
	case a.Object == nil:
	case a.Operation == admission.Create:
		audit.Object(ctx, a.Namespace, a.Object.GetName(), "", "")
	default:
		audit.Object(ctx, a.Namespace, a.Object.GetName(), a.Object.GetUID(), a.Object.GetResourceVersion())
	}
	return nil
}
