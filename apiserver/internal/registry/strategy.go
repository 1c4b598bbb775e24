package registry

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/mergeschema"
	"kctl/proto/core"
)

// Strategy is what is particular to one resource: what its objects are, and their life,
// from Create to Delete. Nil functions do nothing. Object metadata (names, generateName,
// uid, creationTimestamp, generation, labels, annotations, ownerReferences, finalizers) is
// handled and checked by the Store, alike for all resources.
//
// A create runs Default, mutating admission, Default again, Create (Prepare, ValidateName,
// Validate), ValidateLast, Create.Warnings, validating admission, Normalize and TTL. An
// update runs the same, with what its UpdateStrategy has in place of Create.
type Strategy[T core.Object] struct {
	Resource   core.Resource
	Singular   string
	ShortNames []string
	Categories []string
	// Verbs are the verbs that are served, if not all of them.
	Verbs []string
	// StoragePrefix is the key's part after /registry, if it is not the plural
	// name: nodes are stored under "minions", as upstream stores them.
	StoragePrefix string

	// New makes an empty object; it may be nil if T is a pointer to a plain struct.
	New func() T
	// Encoding is how objects are stored whose form does not follow from their Go
	// type: custom resources.
	Encoding *Encoding[T]
	// Default fills in what the user left out. It runs on every decoded object,
	// including stored ones, which may come from an older version.
	Default func(obj T)
	// ValidateLast checks what depends on all else, in new objects (old is the zero T
	// then) and in changed ones, whichever way they are changed. errs are the errors so
	// far, those of metadata among them; it returns those to add.
	ValidateLast func(ctx context.Context, obj, old T, errs field.ErrorList) field.ErrorList
	// Normalize brings an object into the form that it would have after a round
	// trip through protobuf, in which upstream stores objects. It runs when the
	// object is encoded, after field tracking: a manager that sets an empty list
	// owns it, though null is stored.
	Normalize func(obj T)
	// TTL is the time after which the object expires; 0 for never.
	TTL func(obj T) time.Duration
	// HasGeneration: metadata.generation starts at 1 and counts changes of the spec
	// (of everything but metadata and status).
	HasGeneration bool
	// DesiredState returns the part whose changes metadata.generation counts, for
	// objects of which that is another.
	DesiredState func(obj T) any

	Create CreateStrategy[T]
	// Update guards the object itself; Status guards /status, which does not exist
	// if it is nil.
	Update UpdateStrategy[T]
	Status *UpdateStrategy[T]
	// Subresources guard the other ways to change the object, by the name that
	// Resource.Update takes as subresource ("binding", "finalize"). An UpdateStrategy
	// without Prepare may change everything.
	Subresources map[string]UpdateStrategy[T]
	Delete       DeleteStrategy[T]
	Read         ReadStrategy[T]
}

// CreateStrategy is how an object comes to be.
type CreateStrategy[T core.Object] struct {
	// Prepare drops what users may not set (status) and sets what they can't know.
	Prepare func(ctx context.Context, obj T)
	// ValidateName checks the form of metadata.name: one of the NameIs… functions
	// of k8s.io/apimachinery/pkg/api/validation.
	ValidateName func(name string, prefix bool) []string
	Validate     func(ctx context.Context, obj T) field.ErrorList
	// Warnings go to the client and refuse nothing.
	Warnings func(ctx context.Context, obj T) []string
	// NameRegenerated runs if the generated name turned out to be taken; another one
	// is tried then, from ValidateName on. It is nil if nothing depends on the name.
	NameRegenerated func(obj T, taken string)
}

// UpdateStrategy is one way to change an object: itself, its status or another
// subresource of it.
type UpdateStrategy[T core.Object] struct {
	// AllowCreate: PUT to a name that does not exist creates it. Only Strategy.Update has it.
	AllowCreate bool
	// AllowUnconditional: PUT without a resourceVersion overwrites. What Strategy.Update
	// says holds for every way.
	AllowUnconditional bool
	// Internal ways are for the server's own code; they have no URL.
	Internal bool
	// KeepsGeneration: what is changed this way is not desired state, and does not
	// count in metadata.generation (a pod's binding).
	KeepsGeneration bool
	// KeepsMetadata: this way does not change metadata, and no manager comes to
	// own any of it.
	KeepsMetadata bool
	// ResetFields names fields that no manager comes to own this way (for Strategy.Update,
	// by a create either), besides those that another way is for: "metadata.labels".
	ResetFields []string
	// Prepare restores what this way may not change (old's spec on /status, old's
	// status otherwise).
	Prepare func(ctx context.Context, obj, old T)
	// Validate may find what was wrong in old already: the Store leaves that out, by
	// validating an unchanged old, too (newErrors). So it must not return before it has compared
	// the two: an error that is left out would stand for all that was not looked at.
	Validate func(ctx context.Context, obj, old T) field.ErrorList
	Warnings func(ctx context.Context, obj, old T) []string
}

// DeleteStrategy is how an object ends: how long it stays, what becomes of its dependents,
// and the answer.
type DeleteStrategy[T core.Object] struct {
	// GracePeriod decides on graceful deletion. It is given the seconds that the
	// client asked for (nil if it did not say) and returns how many obj gets, and
	// true if it stays, marked, until something (the kubelet) deletes it with a
	// grace period of 0.
	GracePeriod func(obj T, asked *int64) (seconds int64, graceful bool)
	// NoGracePeriod: deletions of such objects, which end when the objects are empty,
	// get no grace period and do not count in metadata.generation.
	NoGracePeriod bool
	// GracePeriodOnSecondDelete: an object that was marked without a grace period gets
	// one, of 0 seconds, when its deletion is asked for again.
	GracePeriodOnSecondDelete bool
	// Begin updates obj (its status) when its deletion begins.
	Begin func(obj T)
	// Held reports whether an object being deleted stays although its grace period
	// is over and it has no metadata.finalizers: a namespace with spec.finalizers.
	// The update that removes the last of these removes the object.
	Held func(obj T) bool
	// TerminatedElsewhere reports whether something other than the store (a kubelet)
	// has yet to end what obj stands for. If such an object is removed before its
	// grace period is over, it is first written with a period of 0: that is how the
	// kubelet learns that no time is left, which the removal alone does not say.
	TerminatedElsewhere func(obj T) bool
	// HasNoDependents: such objects have no dependents, so a deletion waits for none.
	HasNoDependents bool
	// OrphansByDefault: dependents stay if a deletion does not say what becomes of
	// them.
	OrphansByDefault bool
	// ReturnDeletedObject: the answer to a deletion is the final state of the object
	// rather than a Status.
	ReturnDeletedObject bool
}

// ReadStrategy is what can be selected and printed of objects, and what can't be read.
type ReadStrategy[T core.Object] struct {
	// Unreadable returns why an object can't be read although each of its fields
	// can; nil if that can't happen.
	Unreadable func(obj T) error
	// Fields are the selectable fields besides metadata.name and .namespace.
	Fields func(obj T) fields.Set
	// UnknownFieldMessage refuses any other field, in upstream's words for the kind; nil
	// for the usual words.
	UnknownFieldMessage func(name string) string
	// Columns and Row print the object as a table row; if they are nil, the
	// columns are Name and Age.
	Columns []metav1.TableColumnDefinition
	Row     func(obj T) []any
	// CompareRows orders the rows of a table; nil for the order of the list.
	CompareRows func(a, b T) int
}

// Encoding is how a resource encodes and decodes its objects in its own way.
type Encoding[T core.Object] struct {
	// Encode returns the object as it is stored, without a resourceVersion.
	Encode func(obj T) ([]byte, error)
	Decode func(value []byte) (T, error)
	// DecodeBody reads what a client sent. strict lists unknown and duplicate
	// fields.
	DecodeBody func(body []byte) (obj T, strict []error, err error)
	// Settle brings an object that a merge has made into the form in which DecodeBody
	// returns it.
	Settle func(obj T) error
	// NormalizeStored returns a stored value as clients have to see it: it may have been
	// stored under another schema.
	NormalizeStored func(value []byte) []byte
	// MergeSchema is the objects' schema, as far as merging needs it.
	MergeSchema func() *mergeschema.Schema
}
