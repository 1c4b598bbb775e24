package registry

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/shape"
	"kctl/proto/core"
)

// Strategy says what is particular about one resource. Nil functions do
// nothing. Functions run in the order in which they stand here; object
// metadata (names, generateName, uid, creationTimestamp, generation, labels,
// annotations, ownerReferences, finalizers) is the Store's business for every
// resource alike and is checked by it.
type Strategy[T core.Object] struct {
	Resource   core.Resource
	Singular   string
	ShortNames []string
	Categories []string
	// Verbs are what is served, where that is not everything.
	Verbs []string
	// StoragePrefix is the key's part after /registry, where it is not the
	// plural name: nodes are kept under "minions", as upstream keeps them.
	StoragePrefix string

	// New makes an empty object; nil does where T is a plain struct's pointer.
	New func() T
	// Default fills what the user left out. It runs on every decoded object,
	// and on every object read whose stored form may be older.
	Default func(obj T)
	// Unreadable tells why an object can't be read although each of its fields
	// can; nil where there is no such thing.
	Unreadable func(obj T) error
	// Normalize brings an object into the form that protobuf, in which upstream
	// stores, would leave of it. It runs as an object is encoded: to say that a
	// list is empty is to own it, though null is what is kept.
	Normalize func(obj T)
	// ValidateName checks metadata.name beyond being set: one of
	// k8s.io/apimachinery/pkg/api/validation's NameIs… functions.
	ValidateName func(name string, prefix bool) []string

	// PrepareForCreate drops what users may not set (status) and sets what
	// they can't know.
	PrepareForCreate func(ctx context.Context, obj T)
	// Renamed follows PrepareForCreate where the generated name was taken and
	// another one is tried; nil where nothing was made of the name.
	Renamed  func(obj T, taken string)
	Validate func(ctx context.Context, obj T) field.ErrorList
	// Warnings are told to the client and stop nothing.
	Warnings func(ctx context.Context, obj T) []string

	// Unowned names fields that nobody comes to own by one of the ways to write,
	// beside those that another way is for: {"status": {"metadata.labels"}}.
	Unowned map[string][]string

	// Update guards the object itself; Status guards /status, and where it is
	// nil there is no /status.
	Update Change[T]
	Status *Change[T]
	// Subresources guard the other ways to change the object, by the name that
	// Resource.Update takes as subresource ("binding", "finalize"). A Change
	// without Prepare may change everything.
	Subresources map[string]Change[T]

	// HasGeneration: metadata.generation starts at 1 and counts changes of the spec
	// (Update compares everything but metadata and status).
	HasGeneration bool
	// CreateOnUpdate: PUT to a name that is not there creates it.
	CreateOnUpdate bool
	// UnconditionalUpdate: PUT without a resourceVersion overwrites.
	UnconditionalUpdate bool

	// GracePeriod decides on graceful deletion: it returns how many seconds obj is
	// given, of which the client asked for some or, nil, for none in particular, and
	// true where it stays, marked, until somebody (the kubelet) deletes it with
	// grace zero.
	GracePeriod func(obj T, asked *int64) (seconds int64, graceful bool)
	// BeginDelete changes what obj says of itself (its status) as its deletion begins.
	BeginDelete func(obj T)

	// TerminatedElsewhere says that somebody other than the store (a kubelet) has yet
	// to end what obj stands for, so that an object which is removed before its
	// grace period is over is first written with a period of 0: by that they
	// learn that no time is left, which its removal alone does not say.
	TerminatedElsewhere func(obj T) bool

	// AnswersDeleted: whoever deletes is answered with the object as it was at
	// last, rather than with a Status.
	AnswersDeleted bool
	// OwnsNothing: nothing depends on such objects, and a deletion does not wait
	// for dependents.
	OwnsNothing bool

	// Untimed: a deletion of such objects, which is over when they are empty, is
	// neither given a period nor counted as a change of what is desired.
	Untimed bool

	// TimedAgain: the period of an untimed deletion is given, as none, where it is
	// asked for once more.
	TimedAgain bool

	// OrphansByDefault: where a deletion does not say what becomes of the
	// object's dependents, they stay.
	OrphansByDefault bool

	// Held says that an object whose deletion was asked for stays although its
	// grace period and metadata.finalizers are at an end: a namespace with
	// spec.finalizers. An update that ends the last of these removes the object.
	Held func(obj T) bool

	// Fields are the selectable fields beside metadata.name and .namespace.
	Fields func(obj T) fields.Set
	// UnknownField refuses another field, in upstream's words for the kind; nil for
	// the usual ones.
	UnknownField func(name string) string
	// TTL is after how long the object goes by itself; zero for never.
	TTL func(obj T) time.Duration

	// Desired is what metadata.generation counts the changes of, where the
	// object is no Go struct whose fields tell.
	Desired func(obj T) any
	// Encoding is how objects are stored whose form is not that of their Go
	// type alone: custom resources.
	Encoding *Encoding[T]

	// Columns and Row print the object as a table row; where they are nil the
	// columns are Name and Age.
	Columns []metav1.TableColumnDefinition
	Row     func(obj T) []any
}

// Change is one way to change an object.
type Change[T core.Object] struct {
	// Internal ways are for the server's own code: no URL leads to them.
	Internal bool
	// Prepare puts back what this way may not touch (old's spec on /status,
	// old's status otherwise).
	Prepare  func(ctx context.Context, obj, old T)
	Validate func(ctx context.Context, obj, old T) field.ErrorList
	Warnings func(ctx context.Context, obj, old T) []string
	// KeepsGeneration: what is changed in this way is not what users wish for,
	// and does not count in metadata.generation (a pod's binding).
	KeepsGeneration bool
	// KeepsMetadata: of metadata this way changes nothing, and nobody comes to own
	// any of it.
	KeepsMetadata bool
}

// Encoding is a way of its own to store objects.
type Encoding[T core.Object] struct {
	// Encode returns the object as it is stored, without a resourceVersion.
	Encode func(obj T) ([]byte, error)
	Decode func(value []byte) (T, error)
	// DecodeBody reads what a client sent. strict are the fields that are
	// unknown or doubled.
	DecodeBody func(body []byte) (obj T, strict []error, err error)
	// Normal returns a stored value as it has to be seen: what stored it may
	// have known other fields.
	Normal func(value []byte) []byte
	// Shape says how objects are put together, as far as merging goes.
	Shape func() *shape.Shape
}
