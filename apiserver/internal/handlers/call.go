package handlers

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/status"
	"kctl/proto/core"
	"kctl/proto/relay"
)

// call is one request for a resource.
type call struct {
	*handlers
	resource      core.Resource
	kind          schema.GroupVersionKind   // of what is sent and answered
	acceptedKinds []schema.GroupVersionKind // what may be sent instead
	store         registry.Resource
	tracker       *managedfields.Tracker
	subresource   string
	// jsonOnly: the resource's objects have no protobuf form.
	jsonOnly bool
	// converted: objects are stored as another kind or version.
	converted bool
	// custom: neither the resource nor its scale takes strategic merge patches,
	// which need a Go type.
	custom bool

	// connectOptions is the options object of a connection, if admission is to see it.
	connectOptions runtime.Object

	gin             *gin.Context
	ctx             context.Context
	namespace, name string
}

func (c *call) header(name string) string { return c.gin.GetHeader(name) }

func (c *call) groupResource() schema.GroupResource {
	return c.resource.GVR().GroupResource()
}

func (c *call) target() registry.Target {
	return registry.Target{Namespace: c.namespace, Name: c.name, Subresource: c.subresource}
}

// admit is what the registry runs around a change.
func (c *call) admit(operation admission.Operation, options runtime.Object, dryRun []string) registry.Admission {
	attributes := func(obj, old core.Object) *admission.Attributes {
		a := c.admissionAttributes(operation, options, obj, old)
		a.DryRun = admission.DryRun(dryRun)
		return a
	}
	stamp := func(ctx context.Context, hop relay.Hop, old core.Object) {
		if old == nil && c.subresource == "" {
			request.Stamps(ctx).Stamp(hop, c.Clock.Now())
		}
	}
	return registry.Admission{
		ReleasesObject: true,
		Mutate: func(ctx context.Context, obj, old core.Object) error {
			stamp(ctx, relay.ServerDecoded, old)
			err := c.Admission.Admit(ctx, attributes(obj, old))
			if err == nil {
				stamp(ctx, relay.ServerMutated, old)
			}
			return err
		},
		Validate: func(ctx context.Context, obj, old core.Object) error {
			if operation == admission.Update && obj != nil && old == nil {
				if err := c.authorizeAs(ctx, "create"); err != nil {
					return err
				}
			}
			stamp(ctx, relay.ServerValidated, old)
			err := c.Admission.Validate(ctx, attributes(obj, old))
			if err == nil {
				stamp(ctx, relay.ServerAdmitted, old)
			}
			return err
		},
	}
}

// admissionAttributes describe a change to admission. A change to an object that does
// not exist is a create, whatever the verb.
func (c *call) admissionAttributes(operation admission.Operation, options runtime.Object, obj, old core.Object) *admission.Attributes {
	a := &admission.Attributes{
		Operation:      operation,
		Resource:       c.resource,
		Subresource:    c.subresource,
		Namespace:      c.namespace,
		Name:           c.name,
		Object:         obj,
		OldObject:      old,
		Options:        options,
		User:           request.UserFrom(c.ctx),
		ConnectOptions: c.connectOptions,
		FieldTracker:   c.tracker,
	}
	if c.store != nil {
		a.Default = c.store.Default
	}
	switch patch, isPatch := options.(*metav1.PatchOptions); {
	case obj != nil && old == nil:
		a.Operation, a.Options = admission.Create, createOptionsOf(options)
	case isPatch:
		a.Options = updateOptionsOf(patch)
	}
	if a.Name == "" && obj != nil { // objects deleted with a collection are not named
		a.Name = obj.GetName()
	}
	return a
}

// authorizeAs refuses what the user may not do by another verb: to create by an update,
// or to delete an unreadable object.
func (c *call) authorizeAs(ctx context.Context, verb string) error {
	if c.Authorizer == nil {
		return nil
	}
	info := *request.InfoFrom(ctx)
	info.Verb = verb
	attributes := &authz.Attributes{User: request.UserFrom(ctx), Info: info}
	decision, reason, err := c.Authorizer.Authorize(ctx, attributes)
	if err != nil || decision == authz.Allow {
		return err
	}
	return authz.Forbidden(attributes, reason)
}

// createOptionsOf are the options of a create by another verb.
func createOptionsOf(options runtime.Object) runtime.Object {
	out := &metav1.CreateOptions{TypeMeta: optionsType("CreateOptions")}
	switch o := options.(type) {
	case *metav1.UpdateOptions:
		out.DryRun, out.FieldManager, out.FieldValidation = o.DryRun, o.FieldManager, o.FieldValidation
	case *metav1.PatchOptions:
		out.DryRun, out.FieldManager, out.FieldValidation = o.DryRun, o.FieldManager, o.FieldValidation
	default:
		return options
	}
	return out
}

func (c *call) notAllowed(allow []string) error {
	c.gin.Header("Allow", strings.Join(allow, ", "))
	return NotAllowed()
}

// NotAllowed refuses a method that a path does not have.
func NotAllowed() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusMethodNotAllowed,
		Reason:  metav1.StatusReasonMethodNotAllowed,
		Message: "the server does not allow this method on the requested resource",
		Details: &metav1.StatusDetails{},
	}}
}

// fail answers with err as a Status. If the answer has begun, nothing more can
// be said.
func (c *call) fail(err error) {
	if c.gin.Writer.Written() {
		c.Logger.Debug("answer broke off", zap.String("path", c.gin.Request.URL.Path), zap.Error(err))
		return
	}
	told := status.Of(err)
	if told.Code >= http.StatusInternalServerError && errors.Is(c.ctx.Err(), context.DeadlineExceeded) {
		err, told = errTimeout, status.Of(errTimeout)
		request.NoteTerminated(c.ctx)
	}
	if told.Reason == metav1.StatusReasonInternalError {
		c.Logger.Error("request failed", zap.String("method", c.gin.Request.Method), zap.String("path", c.gin.Request.URL.Path), zap.Error(err))
	}
	status.Write(c.gin.Writer, c.gin.Request, err)
}

// errTimeout: the request's time, set by the client or the server, is over.
var errTimeout = apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
