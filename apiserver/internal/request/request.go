package request

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"kctl/proto/core"
	"kctl/proto/relay"
)

// User is an authenticated identity, in the form of a TokenReview's answer.
type User = authenticationv1.UserInfo

// Info is what a request asks for, derived from its method and URL like
// upstream's RequestInfo (API concepts, "Determine the request verb").
type Info struct {
	// Resource is true for requests under /api and /apis that name a resource.
	Resource bool
	// Path is the URL path; the only information on requests that name no resource.
	Path string
	// Verb is get, list, watch, create, update, patch, delete, deletecollection
	// or proxy for resources, and the lower-case HTTP method for other paths.
	Verb string
	// Prefix is "watch" or "proxy" if the path has one before the resource; it is
	// the verb then, whatever the method.
	Prefix string

	APIPrefix, APIGroup, APIVersion string
	Namespace                       string
	ResourceName                    string // plural: "pods"
	Subresource                     string
	Name                            string // empty for collections and creates
	// Parts are the path's segments, starting with the resource.
	Parts []string
	// Fields is the field selector of a request for a collection; nil if there is
	// none, or it is unreadable.
	Fields fields.Selector
	// LabelSelector is the label selector of such a request as it was sent, readable or
	// not: few need it, and it may be long.
	LabelSelector string
}

// Arrival is a request as it arrived, and where the links of the chain record
// results. It is a single value of the context: most links need parts of it, and
// each further value would slow down the look-up of the others.
type Arrival struct {
	ID       string // the audit id
	At       time.Time
	Info     *Info
	Stamps   *relay.Stamps        // of a pod's relay; nil records nothing
	Warnings *Warnings            // nil collects none
	spent    [layers]atomic.Int64 // nanoseconds: see Spent
	written  Written              // see NoteWritten

	deprecated, terminated bool // see NoteDeprecated and NoteTerminated
}

// Written is the object that a request has created or changed.
type Written struct {
	Namespace, Name, UID string
	Created              bool
	Born                 time.Time // the object's creationTimestamp
	At                   time.Time // when the store had it
}

type key int

const (
	arrivalKey key = iota
	userKey
	begunKey
)

// With returns a context that carries the arrival.
func With(ctx context.Context, a *Arrival) context.Context {
	return context.WithValue(ctx, arrivalKey, a)
}

// unknown is the Arrival outside a request.
var unknown Arrival

func arrival(ctx context.Context) *Arrival {
	if a, ok := ctx.Value(arrivalKey).(*Arrival); ok {
		return a
	}
	return &unknown
}

// InfoFrom returns what the request asks for, or nil outside a request.
func InfoFrom(ctx context.Context) *Info { return arrival(ctx).Info }

// WithUser returns a context that carries the authenticated user.
func WithUser(ctx context.Context, user *User) context.Context {
	return context.WithValue(ctx, userKey, user)
}

// UserFrom returns the user, or nil before authentication and in the server's
// own loops.
func UserFrom(ctx context.Context) *User {
	user, _ := ctx.Value(userKey).(*User)
	return user
}

// IDFrom returns the request's audit id, or "".
func IDFrom(ctx context.Context) string { return arrival(ctx).ID }

// ReceivedFrom returns when the request arrived, or the zero time.
func ReceivedFrom(ctx context.Context) time.Time { return arrival(ctx).At }

// Stamps returns where to record the legs this request runs. It may be nil,
// which records nothing.
func Stamps(ctx context.Context) *relay.Stamps { return arrival(ctx).Stamps }

// NoteWritten records that obj is stored, if it is of the resource that the request names: a
// request may write others beside it.
func NoteWritten(ctx context.Context, resource core.Resource, obj metav1.Object, created bool, at time.Time) {
	a := arrival(ctx)
	if a == &unknown || a.Info == nil || a.Info.ResourceName != resource.Name || a.Info.APIGroup != resource.Group {
		return
	}
	if created {
		a.Stamps.Stamp(relay.ServerStored, at)
	}
	a.written = Written{obj.GetNamespace(), obj.GetName(), string(obj.GetUID()), created, obj.GetCreationTimestamp().Time, at}
}

// WrittenFrom returns what NoteWritten recorded; zero if nothing was stored.
func WrittenFrom(ctx context.Context) Written { return arrival(ctx).written }

// NoteDeprecated records that the request is for a deprecated version of a
// resource.
func NoteDeprecated(ctx context.Context) {
	if a := arrival(ctx); a != &unknown {
		a.deprecated = true
	}
}

// Deprecated reports whether NoteDeprecated was called.
func Deprecated(ctx context.Context) bool { return arrival(ctx).deprecated }

// NoteTerminated records that the server ends the request in self-defence: there
// was no room for it, or it took too long.
func NoteTerminated(ctx context.Context) {
	if a := arrival(ctx); a != &unknown {
		a.terminated = true
	}
}

// Terminated reports whether NoteTerminated was called.
func Terminated(ctx context.Context) bool { return arrival(ctx).terminated }

// WarningsFrom returns where warnings are collected, or nil.
func WarningsFrom(ctx context.Context) *Warnings { return arrival(ctx).Warnings }

// Layer is a part of a request's way that may take long.
type Layer int

// The layers. In Queue and in both webhook layers a request waits for others,
// and the server does no work for it.
const (
	Queue Layer = iota
	MutatingWebhooks
	ValidatingWebhooks
	Authentication
	Authorization
	Impersonation
	Storage
	Writing // sending the answer
	layers
)

// Spent records that the request has spent d in a layer.
func Spent(ctx context.Context, in Layer, d time.Duration) {
	if a := arrival(ctx); a != &unknown {
		a.spent[in].Add(int64(d))
	}
}

// SpentFrom returns how long the request has spent in a layer so far.
func SpentFrom(ctx context.Context, in Layer) time.Duration {
	return time.Duration(arrival(ctx).spent[in].Load())
}

// WaitedFrom returns how long the request has waited for others so far.
func WaitedFrom(ctx context.Context) time.Duration {
	return SpentFrom(ctx, Queue) + SpentFrom(ctx, MutatingWebhooks) + SpentFrom(ctx, ValidatingWebhooks)
}

// WithBegun returns a context whose watch calls begun when it has sent the
// initial objects.
func WithBegun(ctx context.Context, begun func()) context.Context {
	return context.WithValue(ctx, begunKey, begun)
}

// Begun returns what a watch calls when it has begun, or nil.
func Begun(ctx context.Context) func() {
	begun, _ := ctx.Value(begunKey).(func())
	return begun
}

// PathMatches reports whether a path is the one of a rule, or begins like it if that ends in *.
func PathMatches(pattern, path string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return pattern == path
}
