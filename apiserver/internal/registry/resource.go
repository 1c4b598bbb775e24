package registry

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/storage/cache"
	"kctl/proto/core"
)

// Encoded is an object as it is stored and sent: JSON, resourceVersion and
// kind in place. The bytes are shared with the cache and must not be changed.
type Encoded = cache.Encoded

// ListOptions select objects. They are metav1.ListOptions after parsing.
type ListOptions struct {
	Labels labels.Selector // nil for all
	Fields fields.Selector // nil for all

	ResourceVersion      string
	ResourceVersionMatch metav1.ResourceVersionMatch
	Limit                int64
	Continue             string

	// For watches.
	AllowBookmarks    bool
	SendInitialEvents *bool
	// Begun is called once all has been sent that was there at first; nil for
	// nobody.
	Begun func()
	// Gather is how long after events were delivered the next are left to come
	// together.
	Gather time.Duration
}

// List is one page of a collection.
type List struct {
	Items           []Encoded
	ResourceVersion string
	Continue        string
	Remaining       *int64
}

// WatchEvent is one change as a watcher sees it: an object that comes to match
// the selectors is ADDED, one that stops matching is DELETED.
type WatchEvent = cache.WatchEvent

// Watcher delivers events until its context ends. A watcher that is too slow
// is ended, rather than slowing the others; the client watches on from the last
// resourceVersion it saw, and gets 410 only if that is too old by then.
type Watcher interface {
	// Events waits for the events, in the goroutine that ranges over them, once.
	// The second value tells that another event is ready.
	Events() iter.Seq2[WatchEvent, bool]
}

// Admit runs around one change: TrackFields before admission, Mutate before
// validation, Validate after it. obj is nil on deletes, old is nil on creates.
// A nil Admit admits everything.
type Admit struct {
	// TrackFields makes the request's field manager the owner, in obj's
	// metadata.managedFields, of what changed; before is old as it is stored.
	// Where it is nil, managedFields stay what they were.
	TrackFields func(obj, old core.Object, before []byte)
	// FieldsMayGo: an object that is too large with its managedFields is stored
	// without them.
	FieldsMayGo bool
	Mutate      func(ctx context.Context, obj, old core.Object) error
	Validate    func(ctx context.Context, obj, old core.Object) error
	// Shares: whoever calls has let go of the object by then, so that followers
	// inside the server may have it instead of decoding their own.
	Shares bool
	// Creates: an update of what is not there creates it.
	Creates bool
}

// Info is what discovery and the handlers have to know of a resource.
type Info struct {
	core.Resource
	// ListKind is the kind of its lists, where that is not Kind with List behind it.
	ListKind   string
	Singular   string
	ShortNames []string
	Categories []string
	// StoredAs is the kind in which objects are stored; empty where nothing is.
	StoredAs schema.GroupVersionKind
	// Verbs are what is served, where that is not everything.
	Verbs     []string
	HasStatus bool
	// Parts are the subresources, beside status, that are read and written as
	// the object itself is ("ephemeralcontainers", "finalize").
	Parts   []string
	Columns []metav1.TableColumnDefinition
	// FieldTracker keeps metadata.managedFields; nil where no field has an owner.
	FieldTracker *managedfields.Tracker
	// AnswersDeleted is as in Strategy.
	AnswersDeleted bool
	// JSONOnly: no Go type knows the objects, so there is no protobuf of them,
	// and no strategic merge.
	JSONOnly bool
}

// Serves reports whether the resource has a verb.
func (i Info) Serves(verb string) bool { return i.Verbs == nil || slices.Contains(i.Verbs, verb) }

// PartVerbs are what is served of a part. An end is only ever told.
func PartVerbs(part string) []string {
	if part == "finalize" {
		return []string{"update"}
	}
	return []string{"get", "patch", "update"}
}

// Target names what an update changes: an object by one of its ways.
type Target struct {
	Namespace, Name string
	// Subresource is "", "status" or one of the strategy's Subresources.
	Subresource string
}

// Transform makes of an object what it shall be. current is a copy, which it may
// change and return, and nil where there is none yet. It may be called several
// times for one update.
type Transform func(current core.Object) (core.Object, error)

// Objects are those of one resource, as far as following, changing and ending
// them goes. Errors are metav1 status errors, ready for the wire.
type Objects interface {
	Info() Info
	Decode(e Encoded) (core.Object, error)
	Get(ctx context.Context, namespace, name, resourceVersion string) (Encoded, error)
	List(ctx context.Context, namespace string, o ListOptions) (List, error)
	Watch(ctx context.Context, namespace string, o ListOptions) (Watcher, error)
	// Update changes what target names. It starts over after a conflict that the
	// caller's resourceVersion does not forbid.
	Update(ctx context.Context, target Target, change Transform, admit Admit, o *metav1.UpdateOptions) (e Encoded, created bool, err error)
	// Delete deletes the object, or begins to. gone tells which.
	Delete(ctx context.Context, namespace, name string, admit Admit, o *metav1.DeleteOptions) (e Encoded, gone bool, err error)
}

// Resource is a Store seen without its type parameter: what handlers call.
type Resource interface {
	Objects
	New() core.Object
	Default(obj core.Object)
	Row(obj core.Object) []any

	Create(ctx context.Context, obj core.Object, admit Admit, o *metav1.CreateOptions) (Encoded, error)
	DeleteCollection(ctx context.Context, namespace string, admit Admit, o *metav1.DeleteOptions, list ListOptions) (List, error)
}

// Subresource is a part of an object with a handler of its own (pods/binding,
// pods/log, serviceaccounts/token).
type Subresource struct {
	Name string
	Kind schema.GroupVersionKind // of what is sent and answered
	// Object is read, updated and patched as an object of Kind.
	Object Resource
	// Connect answers methods by itself (streams, proxies); the error, if any,
	// is written as a status by the caller.
	Connect map[string]func(ctx context.Context, w http.ResponseWriter, r *http.Request, namespace, name string) error
	// Also are kinds whose objects are taken as if they were of Kind: older
	// versions that are the same but for their name.
	Also []schema.GroupVersionKind
	// FieldTracker of what is sent, where clients see its managedFields in the
	// answer; nil otherwise.
	FieldTracker *managedfields.Tracker
	// Create takes a decoded object of Kind and returns the answer.
	New    func() any
	Create func(ctx context.Context, namespace, name string, obj any, o *metav1.CreateOptions) (any, error)
}

// Served is a resource with those of its subresources that have handlers of
// their own: what the server installs, discovery lists and OpenAPI describes.
type Served struct {
	Resource     Resource
	Subresources []Subresource
}

// Serve lists resources that have no subresources with handlers of their own.
func Serve(resources ...Resource) []Served {
	out := make([]Served, len(resources))
	for i, r := range resources {
		out[i].Resource = r
	}
	return out
}
