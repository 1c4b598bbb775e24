package request

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/fields"

	"kctl/proto/relay"
)

// User is an authenticated identity, in the form of a TokenReview's answer.
type User = authenticationv1.UserInfo

// Info is what a request asks for, read off its method and URL as upstream's
// RequestInfo is (API concepts, "Determine the request verb").
type Info struct {
	// Resource is true for requests under /api and /apis that name a resource.
	Resource bool
	// Path is the URL path; for requests that name no resource, all there is.
	Path string
	// Verb is get, list, watch, create, update, patch, delete, deletecollection
	// or proxy for resources, and the lower-case HTTP method for other paths.
	Verb string
	// Prefix is "watch" or "proxy" where the path has one before the resource,
	// which is the verb then, whatever the method.
	Prefix string

	APIPrefix, APIGroup, APIVersion string
	Namespace                       string
	ResourceName                    string // plural: "pods"
	Subresource                     string
	Name                            string // empty for collections and creates
	// Parts are the path's segments from the resource on.
	Parts []string
	// Fields is the field selector of a request for many objects; nil where
	// there is none, or none that can be read.
	Fields fields.Selector
}

type key int

const (
	infoKey key = iota
	userKey
	idKey
	receivedKey
	stampsKey
	warningsKey
	begunKey
)

// WithInfo returns a context that carries info.
func WithInfo(ctx context.Context, info *Info) context.Context {
	return context.WithValue(ctx, infoKey, info)
}

// InfoFrom returns what the request asks for, or nil outside a request.
func InfoFrom(ctx context.Context) *Info {
	info, _ := ctx.Value(infoKey).(*Info)
	return info
}

// WithUser returns a context that carries the authenticated user.
func WithUser(ctx context.Context, user *User) context.Context {
	return context.WithValue(ctx, userKey, user)
}

// UserFrom returns who asks, or nil before authentication and in loops of the
// server's own.
func UserFrom(ctx context.Context) *User {
	user, _ := ctx.Value(userKey).(*User)
	return user
}

// WithID returns a context that carries the request's audit id.
func WithID(ctx context.Context, id string) context.Context { return context.WithValue(ctx, idKey, id) }

// IDFrom returns the request's audit id, or "".
func IDFrom(ctx context.Context) string {
	id, _ := ctx.Value(idKey).(string)
	return id
}

// WithReceived returns a context that carries when the request arrived.
func WithReceived(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, receivedKey, at)
}

// ReceivedFrom returns when the request arrived, or the zero time.
func ReceivedFrom(ctx context.Context) time.Time {
	at, _ := ctx.Value(receivedKey).(time.Time)
	return at
}

// WithStamps returns a context that collects the stamps of a pod's relay.
func WithStamps(ctx context.Context, r *relay.Recorder) context.Context {
	return context.WithValue(ctx, stampsKey, r)
}

// Stamps returns where to note the legs this request runs. It may be nil,
// which records nothing.
func Stamps(ctx context.Context) *relay.Recorder {
	r, _ := ctx.Value(stampsKey).(*relay.Recorder)
	return r
}

// WithBegun returns a context whose watch calls begun when all has been sent
// that was there at first.
func WithBegun(ctx context.Context, begun func()) context.Context {
	return context.WithValue(ctx, begunKey, begun)
}

// Begun returns what a watch calls when it has begun, or nil.
func Begun(ctx context.Context) func() {
	begun, _ := ctx.Value(begunKey).(func())
	return begun
}
