package audit

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/request"
)

// Sink takes events. It must not delay or change them.
type Sink interface {
	// Write takes one event; ok is false if it is known to be lost.
	Write(e *Event) (ok bool)
	// Run delivers events until ctx ends, and then the remaining ones.
	Run(ctx context.Context) error
	// Strict: a request whose first event is lost must not be served.
	Strict() bool
}

// Auditor records events as its policy says.
type Auditor struct {
	policy  *Policy
	sinks   []Sink
	clock   clock.PassiveClock
	metrics *metrics
}

// Record is what is kept of one request. It is safe for concurrent use.
type Record struct {
	auditor *Auditor
	verdict verdict

	mu    sync.Mutex
	event Event
	// closed: the last event has been written; it is too late for annotations.
	closed bool
}

type recordKey struct{}

// early is what is found out about a request before it is known whose it is, and so whether anything is kept
// of it. It is safe for concurrent use.
type early struct {
	mu          sync.Mutex
	annotations map[string]string
	// taken: it is known. If nothing is kept of the request, neither is what is found out later.
	taken bool
}

// take returns the annotations, which are then those of the caller, and ends their collection.
func (e *early) take() map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	annotations := e.annotations
	e.annotations, e.taken = nil, true
	return annotations
}

func (e *early) annotate(key, value string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.taken {
		addFirst(&e.annotations, key, value)
	}
}

type earlyKey struct{}

// WithEarly returns a context whose request keeps what Annotate is told before Begin.
func WithEarly(ctx context.Context) context.Context {
	return context.WithValue(ctx, earlyKey{}, &early{})
}

// Annotate adds a fact to the events of the request in ctx, under a key of the
// form NAME.DOMAIN/KEY. A key keeps its first value. Without auditing it does
// nothing.
func Annotate(ctx context.Context, key, value string) {
	if r := recordOf(ctx); r != nil {
		r.annotate(key, value)
	} else if e, ok := ctx.Value(earlyKey{}).(*early); ok {
		e.annotate(key, value)
	}
}

// addFirst adds an annotation, unless the key has a value already.
func addFirst(annotations *map[string]string, key, value string) {
	if *annotations == nil {
		*annotations = map[string]string{}
	}
	if _, set := (*annotations)[key]; !set {
		(*annotations)[key] = value
	}
}

// AnnotateAt is Annotate for a fact that only events of a level have.
func AnnotateAt(ctx context.Context, level Level, key, value string) {
	if r := recordOf(ctx); r != nil && r.verdict.level.AtLeast(level) {
		r.annotate(key, value)
	}
}

// recordOf is the record of the request in ctx; nil if nothing is kept of it.
func recordOf(ctx context.Context) *Record {
	r, _ := ctx.Value(recordKey{}).(*Record)
	return r
}

func (r *Record) annotate(key, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		addFirst(&r.event.Annotations, key, value)
	}
}

// Impersonation records the constrained right by which a user impersonates
// another.
func Impersonation(ctx context.Context, constraint string) {
	r := recordOf(ctx)
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.event.AuthenticationMetadata = &AuthenticationMetadata{ImpersonationConstraint: constraint}
	}
}

// Named adds the name of what a request creates, which its path does not say and
// the server may have generated.
func Named(ctx context.Context, namespace, name string) {
	if r := recordOf(ctx); r != nil {
		r.refer(func(ref *ObjectReference) { fill(ref, namespace, name, "", "") })
	}
}

// refer changes the objectRef of the events that follow.
func (r *Record) refer(change func(ref *ObjectReference)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.event.ObjectRef == nil || r.closed {
		return
	}
	ref := *r.event.ObjectRef // a copy: events that are written have the old one
	change(&ref)
	r.event.ObjectRef = &ref
}

// fill sets the fields of ref that are empty.
func fill(ref *ObjectReference, namespace, name string, uid types.UID, resourceVersion string) {
	ref.Namespace, ref.Name = cmp.Or(ref.Namespace, namespace), cmp.Or(ref.Name, name)
	ref.UID, ref.ResourceVersion = cmp.Or(ref.UID, uid), cmp.Or(ref.ResourceVersion, resourceVersion)
}

// With returns a context whose request is recorded by r.
func With(ctx context.Context, r *Record) context.Context {
	return context.WithValue(ctx, recordKey{}, r)
}

// Begin applies the policy to a request; it returns nil if nothing of it is kept.
func (a *Auditor) Begin(r *http.Request, user *request.User) *Record {
	ctx := r.Context()
	info := request.InfoFrom(ctx)
	var annotations map[string]string
	if e, ok := ctx.Value(earlyKey{}).(*early); ok {
		annotations = e.take()
	}
	v := a.policy.judge(user, info)
	a.metrics.levels.WithLabelValues(string(v.level)).Inc()
	if v.level == None {
		return nil
	}
	record := &Record{auditor: a, verdict: v, event: Event{
		TypeMeta: metav1.TypeMeta{Kind: "Event", APIVersion: apiVersion},
		Level:    v.level, AuditID: types.UID(request.IDFrom(ctx)),
		RequestURI: r.URL.RequestURI(), Verb: info.Verb, SourceIPs: sourceIPs(r), UserAgent: userAgent(r),
		RequestReceivedTimestamp: metav1.NewMicroTime(request.ReceivedFrom(ctx)),
		Annotations:              annotations,
	}}
	if user != nil {
		record.event.User = *user
	}
	if info.Resource {
		record.event.ObjectRef = &ObjectReference{
			Resource: info.ResourceName, Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name,
			APIGroup: info.APIGroup, APIVersion: info.APIVersion,
		}
	}
	return record
}

// Level is how much of the request is kept.
func (r *Record) Level() Level { return r.verdict.level }

// Stage writes the event of a stage, after change has filled in what is known
// by then. It returns false, and the request must not go on, only if a strict
// sink lost the event.
func (r *Record) Stage(stage Stage, change func(e *Event)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if change != nil {
		change(&r.event)
	}
	r.closed = r.closed || stage == ResponseComplete || stage == Panic
	if slices.Contains(r.verdict.omit, stage) {
		return true
	}
	e := r.event // what sinks get is never modified again
	e.Stage = stage
	e.StageTimestamp = metav1.NewMicroTime(r.auditor.clock.Now())
	e.Annotations = maps.Clone(r.event.Annotations)
	r.auditor.metrics.events.Inc()
	proceed := true
	for _, sink := range r.auditor.sinks {
		if !sink.Write(&e) && sink.Strict() && stage == RequestReceived {
			proceed = false
		}
	}
	if !proceed {
		r.auditor.metrics.rejected.Inc()
	}
	return proceed
}

// Answered adds the object in an answer's body to an event, if the policy keeps it.
func (r *Record) Answered(e *Event, body *Body) {
	if r.verdict.level.AtLeast(RequestResponse) {
		e.ResponseObject = body.JSON(r.verdict.omitManagedFields)
	}
}
