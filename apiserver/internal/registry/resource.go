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
	"k8s.io/apimachinery/pkg/runtime"
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
	// InitialEventsSent, if not nil, is called once all initial objects have been sent.
	InitialEventsSent func()
	// BatchDelay is how long to wait after delivering events, so that the next ones
	// can be delivered together.
	BatchDelay time.Duration
}

// List is one page of a collection.
type List struct {
	Items           []Encoded
	ResourceVersion string
	Continue        string
	Remaining       *int64
}

// WatchEvent is one change as a watcher sees it: an object that begins to match
// the selectors is ADDED, one that stops matching is DELETED.
type WatchEvent = cache.WatchEvent

// Watcher delivers events until its context ends. A watcher that is too slow is
// ended rather than slowing down the others; the client goes on from the last
// resourceVersion it saw, and gets 410 only if that is too old by then.
type Watcher interface {
	// Events yields the events as they come, to one caller, once. The second value
	// reports that another event is ready.
	Events() iter.Seq2[WatchEvent, bool]
}

// Admission runs around one change: TrackFields before admission, Mutate before
// validation, Validate after it. obj is nil on deletes, old is nil on creates.
// A nil Admission admits everything.
type Admission struct {
	// TrackFields makes the request's field manager the owner of what changed, in
	// obj's metadata.managedFields; before is old as it is stored.
	TrackFields func(obj, old core.Object, before []byte)
	// FieldManager becomes that owner if TrackFields is nil. If it is empty, too, an update
	// leaves managedFields as they were, and a new object belongs to ServerManager.
	FieldManager string
	// MayDropManagedFields: an object that is too large only because of its managedFields
	// is stored without them.
	MayDropManagedFields bool
	Mutate               func(ctx context.Context, obj, old core.Object) error
	Validate             func(ctx context.Context, obj, old core.Object) error
	// ReleasesObject: the caller has let go of the object by then, so that followers
	// inside the server may use it instead of decoding their own.
	ReleasesObject bool
	// CreatesIfMissing: an update of an object that does not exist creates it.
	CreatesIfMissing bool
}

// Info is what discovery and the handlers need to know about a resource.
type Info struct {
	core.Resource
	// ListKind is the kind of its lists, if that is not Kind followed by List.
	ListKind   string
	Singular   string
	ShortNames []string
	Categories []string
	// StoredAs is the kind in which objects are stored; empty if none are.
	StoredAs schema.GroupVersionKind
	// Verbs are the verbs that are served, if not all of them.
	Verbs     []string
	HasStatus bool
	// Subresources are the subresources besides status that are read and written as the
	// object itself is ("ephemeralcontainers", "finalize").
	Subresources []string
	Columns      []metav1.TableColumnDefinition
	// CompareRows is as in Strategy; it may be nil.
	CompareRows func(a, b core.Object) int
	// FieldTracker keeps metadata.managedFields; nil if fields have no owners.
	FieldTracker *managedfields.Tracker
	// ReturnDeletedObject is as in DeleteStrategy.
	ReturnDeletedObject bool
	// JSONOnly: there is no Go type for the objects, so neither protobuf nor
	// strategic merge works for them.
	JSONOnly bool
}

// Serves reports whether a verb is served.
func (i Info) Serves(verb string) bool { return i.Verbs == nil || slices.Contains(i.Verbs, verb) }

// SubresourceVerbs are the verbs that are served of a subresource that is read and written as its object is.
func SubresourceVerbs(subresource string) []string {
	if subresource == "finalize" {
		return []string{"update"}
	}
	return []string{"get", "patch", "update"}
}

// Target names what an update changes: an object, through itself or a subresource.
type Target struct {
	Namespace, Name string
	// Subresource is "", "status" or one of the strategy's Subresources.
	Subresource string
}

// Transform returns what an object shall become. current is a copy, which it may
// change and return; it is nil if the object does not exist yet. It may be
// called several times for one update.
type Transform func(current core.Object) (core.Object, error)

// Objects reads, follows, changes and deletes the objects of one resource.
// Errors are metav1 status errors, ready for the wire.
type Objects interface {
	Info() Info
	Decode(e Encoded) (core.Object, error)
	Get(ctx context.Context, namespace, name, resourceVersion string) (Encoded, error)
	List(ctx context.Context, namespace string, o ListOptions) (List, error)
	Watch(ctx context.Context, namespace string, o ListOptions) (Watcher, error)
	// Update changes what target names. After a conflict it starts over, unless
	// the caller's resourceVersion forbids that.
	Update(ctx context.Context, target Target, change Transform, admit Admission, o *metav1.UpdateOptions) (e Encoded, created bool, err error)
	// Delete deletes the object, or marks it as being deleted; gone reports which.
	Delete(ctx context.Context, namespace, name string, admit Admission, o *metav1.DeleteOptions) (e Encoded, gone bool, err error)
}

// Resource is a Store without its type parameter: what handlers call.
type Resource interface {
	Objects
	New() core.Object
	Default(obj core.Object)
	Row(obj core.Object) []any

	Create(ctx context.Context, obj core.Object, admit Admission, o *metav1.CreateOptions) (Encoded, error)
	DeleteCollection(ctx context.Context, namespace string, admit Admission, o *metav1.DeleteOptions, list ListOptions) (List, error)
}

// Subresource is a part of an object with a handler of its own (pods/binding,
// pods/log, serviceaccounts/token).
type Subresource struct {
	Name string
	Kind schema.GroupVersionKind // of what is sent and answered
	// Object is read, updated and patched as an object of Kind.
	Object Resource
	// Connect answers the request itself (streams, proxies); the caller writes the
	// error, if any, as a status.
	Connect map[string]func(ctx context.Context, w http.ResponseWriter, r *http.Request, namespace, name string) error
	// AnyPath says that Connect also answers what follows in the path: it belongs to
	// the server that is connected (proxies).
	AnyPath bool
	// AlsoAccepts lists kinds that are accepted as if they were Kind: older versions that
	// differ in name only.
	AlsoAccepts []schema.GroupVersionKind
	// FieldTracker tracks what is sent, if clients see its managedFields in the
	// answer; nil otherwise.
	FieldTracker *managedfields.Tracker
	// Create takes a decoded object of Kind and returns the answer.
	New    func() runtime.Object
	Create func(ctx context.Context, namespace, name string, obj runtime.Object, o *metav1.CreateOptions) (runtime.Object, error)
}

// Served is a resource with its subresources that have handlers of their own:
// what the server installs, discovery lists and OpenAPI describes.
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
