package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// Type says what happened to an object.
type Type string

const (
	Added    Type = "ADDED"
	Modified Type = "MODIFIED"
	Deleted  Type = "DELETED"
)

// Sink receives what a Reflector brings. Its methods are called from one
// goroutine, in the order of the server's revisions. Objects are the Sink's to
// keep; nobody else changes them.
type Sink[T core.Object] interface {
	// Replace gives the whole state, after each list.
	Replace(items []T)
	// Apply gives one change. A Deleted object is in its last state.
	Apply(t Type, obj T)
}

// Decoder is a Sink that decodes objects itself: if it keeps only a part of
// each, the rest need not be decoded. It is called from the Reflector's
// goroutine.
type Decoder[T core.Object] interface {
	Decode(data []byte) (T, error)
}

// Keeper is a Sink that keeps its old version of an object when a list brings a
// new one that can't be decoded.
type Keeper[T core.Object] interface {
	Get(namespace, name string) (T, bool)
}

// Options of a Reflector; zero values mean the defaults named.
type Options struct {
	LabelSelector string
	FieldSelector string
	Clock         clock.Clock    // the real one
	Logger        *zap.Logger    // none
	Backoff       backoff.Policy // 200 ms to 30 s, doubling, jittered
	// StallAfter ends a watch on which nothing, not even a bookmark, came for this
	// long (default 5 minutes; the server sends a bookmark about every minute),
	// because its connection may be dead without either end having noticed.
	StallAfter time.Duration
	// FewEvents is for what hardly ever changes, such as a single object: watches last
	// longer and take less memory.
	FewEvents bool
}

const (
	pageSize = 500
	// Watches are ended by the server after 5 to 10 minutes, spread so that
	// clients do not all come back at once; with few events, after half an hour to an hour.
	minWatch     = 5 * time.Minute
	minLongWatch = 30 * time.Minute
)

// Reflector brings a resource's objects, and every change of them, to a Sink.
type Reflector[T core.Object] struct {
	resource rest.Resource
	newT     func() T
	decode   func(data []byte) (T, error)
	sink     Sink[T]
	options  Options

	synced   chan struct{}
	syncOnce sync.Once

	revision string // of the last change delivered; owned by Run
}

// NewReflector returns a Reflector of resource; Run starts it. A sink that is a
// Decoder makes the objects itself.
func NewReflector[T core.Object](resource rest.Resource, newT func() T, sink Sink[T], o Options) *Reflector[T] {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Backoff == (backoff.Policy{}) {
		o.Backoff = backoff.Policy{Initial: 200 * time.Millisecond, Max: 30 * time.Second, Jitter: 0.5}
	}
	if o.StallAfter == 0 {
		o.StallAfter = 5 * time.Minute
	}
	decode := func(data []byte) (T, error) {
		obj := newT()
		return obj, core.Decode(data, obj)
	}
	if decoder, ok := sink.(Decoder[T]); ok {
		decode = decoder.Decode
	}
	return &Reflector[T]{resource: resource, newT: newT, decode: decode, sink: sink, options: o, synced: make(chan struct{})}
}

// Synced is closed when the first list has been given to the Sink.
func (r *Reflector[T]) Synced() <-chan struct{} { return r.synced }

// errRelist says that the revision can't be used any more: it is too old, or followed by
// an error or by what can't be read.
var errRelist = errors.New("the revision is not usable")

var (
	errNoName    = errors.New("it has no name")
	errNoVersion = errors.New("it has no resourceVersion")
)

// Run lists and watches until ctx ends, and returns ctx's error.
func (r *Reflector[T]) Run(ctx context.Context) error {
	failures, listed := 0, false
	for ctx.Err() == nil {
		var err error
		if !listed {
			err = r.list(ctx)
			listed = err == nil
		}
		progressed := false
		if err == nil {
			progressed, err = r.watch(ctx)
		}
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errRelist):
			listed = false
			r.options.Logger.Info("watch can't go on from its revision, listing again",
				zap.String("resource", r.resource.Name()), zap.String("revision", r.revision), zap.Error(err))
		case err != nil && (progressed || failures == 0): // not every failed attempt after that
			r.options.Logger.Warn("watch broke off, will resume",
				zap.String("resource", r.resource.Name()), zap.String("revision", r.revision), zap.Error(err))
		}
		if progressed {
			failures = 0
		}
		// A watch that ends at once without an error, again and again, must not
		// become a busy loop either.
		if err != nil || !progressed {
			failures++
			_ = backoff.Sleep(ctx, r.options.Clock, r.options.Backoff.Delay(failures))
		}
	}
	return ctx.Err()
}

// listPage is a list whose items stay encoded until each is decoded into a T.
type listPage struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ListMeta   `json:"metadata"`
	Items    []json.RawMessage `json:"items"`
}

func (r *Reflector[T]) list(ctx context.Context) error {
	var items []T
	next, revision := "", ""
	for {
		var page listPage
		err := r.resource.List(ctx, &page,
			rest.LabelSelector(r.options.LabelSelector), rest.FieldSelector(r.options.FieldSelector),
			rest.Query("limit", strconv.Itoa(pageSize)), rest.Query("continue", next))
		if apierrors.IsResourceExpired(err) && next != "" {
			return errRelist
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", r.resource.Name(), err)
		}
		// Another kind's list, or any other JSON, would read as one of no objects.
		if want := r.resource.Kind() + "List"; page.Kind != want {
			return fmt.Errorf("list %s: the answer is of kind %.100q, not %s", r.resource.Name(), page.Kind, want)
		}
		for _, raw := range page.Items {
			obj, err := r.decodeNamed(raw)
			if err != nil {
				metadata, known := r.handleUndecodable(raw, err)
				if !known {
					return fmt.Errorf("list %s: decode item: %w", r.resource.Name(), err)
				}
				if obj, known = r.lastKnown(metadata); !known {
					continue
				}
			}
			items = append(items, obj)
		}
		revision, next = page.Metadata.ResourceVersion, page.Metadata.Continue
		if next == "" {
			break
		}
	}
	r.revision = revision
	r.sink.Replace(items)
	r.syncOnce.Do(func() { close(r.synced) })
	return nil
}

// watch delivers changes until the watch ends. progressed says whether any
// event came, err why it ended; an end by the server is no error.
func (r *Reflector[T]) watch(ctx context.Context) (progressed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alive := make(chan struct{}, 1)
	// From before the watch is opened, as a dead server may not even answer.
	go r.endWhenStalled(ctx, cancel, alive)
	stream, err := r.resource.Watch(ctx, r.watchOptions()...)
	if err != nil {
		return false, r.watchError(err)
	}
	defer stream.Close()
	for {
		event, err := stream.Next()
		if err != nil {
			return progressed, r.streamError(err)
		}
		select {
		case alive <- struct{}{}:
		default:
		}
		if err := r.deliver(event); err != nil {
			return progressed, err
		}
		progressed = true
	}
}

func (r *Reflector[T]) watchOptions() []rest.Option {
	options := []rest.Option{
		rest.LabelSelector(r.options.LabelSelector), rest.FieldSelector(r.options.FieldSelector),
		rest.Query("resourceVersion", r.revision), rest.Query("allowWatchBookmarks", "true"),
	}
	least := minWatch
	if r.options.FewEvents {
		least = minLongWatch
		options = append(options, rest.FewEvents())
	}
	lasts := least + rand.N(least)
	return append(options, rest.Query("timeoutSeconds", strconv.Itoa(int(lasts.Seconds()))))
}

// endWhenStalled cancels a watch from which no sign of life came for too long.
// It ends with ctx.
func (r *Reflector[T]) endWhenStalled(ctx context.Context, cancel context.CancelFunc, alive <-chan struct{}) {
	stalled := r.options.Clock.NewTimer(r.options.StallAfter)
	defer stalled.Stop()
	for {
		select {
		case <-alive:
			stalled.Reset(r.options.StallAfter)
		case <-stalled.C():
			cancel()
			return
		case <-ctx.Done():
			return
		}
	}
}

// streamError distinguishes the ordinary end of a watch from a broken one, and from one
// that has no events, which would come again from the same revision.
func (r *Reflector[T]) streamError(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, rest.ErrNoEvent):
		return fmt.Errorf("watch %s: %w: %w", r.resource.Name(), err, errRelist)
	}
	return err
}

// decodeNamed decodes an object; without a name it is none, such as null.
func (r *Reflector[T]) decodeNamed(data []byte) (T, error) {
	obj, err := r.decode(data)
	if err == nil && obj.GetName() == "" {
		err = errNoName
	}
	return obj, err
}

// handleUndecodable handles an object that can't be decoded, such as one with an invalid
// quantity. It is skipped: it stays as the watch last brought it, and does not keep
// the others from being seen. The result has only its metadata; known says that this
// could be read.
func (r *Reflector[T]) handleUndecodable(data []byte, cause error) (obj T, known bool) {
	var partial metav1.PartialObjectMetadata
	if core.Decode(data, &partial) != nil || partial.Name == "" || partial.ResourceVersion == "" {
		return obj, false
	}
	r.options.Logger.Error("object of the API server can't be read and is passed over",
		zap.String("resource", r.resource.Name()), zap.String("object", partial.Namespace+"/"+partial.Name), zap.Error(cause))
	obj = r.newT()
	obj.SetNamespace(partial.Namespace)
	obj.SetName(partial.Name)
	obj.SetUID(partial.UID)
	obj.SetLabels(partial.Labels)
	obj.SetResourceVersion(partial.ResourceVersion)
	return obj, true
}

// lastKnown is the sink's old version of an object that can't be read now.
func (r *Reflector[T]) lastKnown(metadata T) (obj T, ok bool) {
	keeper, ok := r.sink.(Keeper[T])
	if !ok {
		return obj, false
	}
	obj, ok = keeper.Get(metadata.GetNamespace(), metadata.GetName())
	return obj, ok && obj.GetUID() == metadata.GetUID()
}

func (r *Reflector[T]) watchError(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return errRelist
	}
	return fmt.Errorf("watch %s: %w", r.resource.Name(), err)
}

func (r *Reflector[T]) deliver(event rest.Event) error {
	switch kind := Type(event.Type); kind {
	case Added, Modified, Deleted:
		obj, err := r.decodeNamed(event.Object)
		if err == nil && obj.GetResourceVersion() == "" {
			err = errNoVersion
		}
		if err != nil {
			metadata, known := r.handleUndecodable(event.Object, err)
			if !known {
				return fmt.Errorf("watch %s: decode %s event: %w: %w", r.resource.Name(), kind, err, errRelist)
			}
			obj = metadata
		}
		if err == nil || kind == Deleted {
			r.sink.Apply(kind, obj)
		}
		r.revision = obj.GetResourceVersion()
		return nil
	case "BOOKMARK":
		var mark metav1.PartialObjectMetadata
		err := core.Decode(event.Object, &mark)
		if err == nil && mark.ResourceVersion == "" {
			err = errNoVersion // a watch from no revision would not tell what was deleted meanwhile
		}
		if err != nil {
			return fmt.Errorf("watch %s: decode bookmark: %w: %w", r.resource.Name(), err, errRelist)
		}
		r.revision = mark.ResourceVersion
		return nil
	case "ERROR":
		var status metav1.Status
		if err := core.Decode(event.Object, &status); err != nil {
			return fmt.Errorf("watch %s: decode error event: %w: %w", r.resource.Name(), err, errRelist)
		}
		// Whatever it is, it may come again from the same revision.
		return fmt.Errorf("watch %s: %w: %w", r.resource.Name(), &apierrors.StatusError{ErrStatus: status}, errRelist)
	}
	return fmt.Errorf("watch %s: unknown event type %q: %w", r.resource.Name(), event.Type, errRelist)
}
