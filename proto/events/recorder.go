package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// Sink is what callers that report events should ask for.
type Sink interface {
	Eventf(obj runtime.Object, eventType, reason, format string, args ...any)
}

const (
	queueLength = 1000
	maxMessage  = 1024 // bytes the API takes
	maxTries    = 12
)

// sendPolicy waits between tries to send one event while the server is away.
var sendPolicy = backoff.Policy{Initial: 500 * time.Millisecond, Max: 10 * time.Second, Jitter: 0.5}

// Options of a Recorder.
type Options struct {
	Component, Host string // the source that its events carry
	// Actions maps a reason to the action that its events carry, if any.
	Actions map[string]string
	// Busy makes events of Laterf wait while it returns true; nil means never.
	Busy func() bool
	// LongestWait is how long the oldest event of Laterf waits at most; zero means as
	// long as the program is busy.
	LongestWait time.Duration
}

// Recorder sends events from one program on one host. It is safe for
// concurrent use.
type Recorder struct {
	client     *rest.Client
	options    Options
	clock      clock.Clock
	logger     *zap.Logger
	queue      chan *core.Event
	delayed    delayedQueue
	dropped    atomic.Int64 // since the queue was last empty
	correlator *correlator  // owned by Run
}

// NewRecorder returns a Recorder; Run sends its events.
func NewRecorder(client *rest.Client, options Options, clock clock.Clock, logger *zap.Logger) *Recorder {
	return &Recorder{
		client: client, options: options, clock: clock, logger: logger,
		queue: make(chan *core.Event, queueLength), correlator: newCorrelator(clock),
		delayed: delayedQueue{busy: options.Busy, most: options.LongestWait, wake: make(chan struct{}, 1)},
	}
}

// Event reports that something happened to obj. eventType is Normal or Warning,
// reason a CamelCase word, message a sentence for people. Where more events wait
// than the queue holds, the newest is dropped.
func (r *Recorder) Event(obj runtime.Object, eventType, reason, message string) {
	r.Annotated(obj, nil, eventType, reason, message)
}

// Annotated is Event with annotations, for programs that read events.
func (r *Recorder) Annotated(obj runtime.Object, annotations map[string]string, eventType, reason, message string) {
	if ref := r.referenceTo(obj, "", reason); ref != nil {
		r.enqueue(ref, annotations, eventType, reason, message)
	}
}

// Eventf is Event with a format.
func (r *Recorder) Eventf(obj runtime.Object, eventType, reason, format string, args ...any) {
	r.Event(obj, eventType, reason, fmt.Sprintf(format, args...))
}

// ContainerEventf reports something about one container of pod; fieldPath says
// which, as in "spec.containers{web}".
func (r *Recorder) ContainerEventf(pod *core.Pod, fieldPath, eventType, reason, format string, args ...any) {
	if ref := r.referenceTo(pod, fieldPath, reason); ref != nil {
		r.enqueue(ref, nil, eventType, reason, fmt.Sprintf(format, args...))
	}
}

func (r *Recorder) enqueue(ref *core.ObjectReference, annotations map[string]string, eventType, reason, message string) {
	event := r.event(ref, eventType, reason, message, r.clock.Now())
	event.Annotations = annotations
	select {
	case r.queue <- event:
	default:
		// A program that reports so much must not log as much.
		if r.dropped.Add(1) == 1 {
			r.logger.Warn("too many events wait, new ones are dropped",
				zap.String("object", ref.Namespace+"/"+ref.Name), zap.String("reason", reason))
		}
	}
}

func (r *Recorder) event(ref *core.ObjectReference, eventType, reason, message string, at time.Time) *core.Event {
	event := New(ref, corev1.EventSource{Component: r.options.Component, Host: r.options.Host}, eventType, reason, message, at)
	event.Action = r.options.Actions[reason]
	return event
}

// New returns an event that happened once, for programs that write their events
// themselves.
func New(ref *core.ObjectReference, source corev1.EventSource, eventType, reason, message string, at time.Time) *core.Event {
	now := metav1.NewTime(at)
	namespace := ref.Namespace
	if namespace == "" {
		namespace = core.NamespaceDefault
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-len("...")], "") + "..." // no partial character
	}
	return &core.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{
			// The name must be new each time; upstream uses the clock, too.
			Name:      eventName(ref.Name, now.UnixNano()),
			Namespace: namespace,
		},
		InvolvedObject:      *ref,
		Reason:              reason,
		Message:             message,
		Source:              source,
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Count:               1,
		Type:                eventType,
		ReportingController: source.Component,
		ReportingInstance:   source.Host,
	}
}

// endGrace is what is left to tell what still waits when a program ends.
const endGrace = 3 * time.Second

// Run sends reported events until ctx ends, and returns ctx's error. What is
// still waiting by then is sent too, as long as the grace period lasts and the
// server accepts it.
func (r *Recorder) Run(ctx context.Context) error {
	for {
		event, err := r.next(ctx)
		if err != nil {
			r.flush(ctx)
			return err
		}
		if known, ok := r.correlator.correlate(event); ok { // else there were too many about the object
			r.sendWithRetry(ctx, event, known)
		}
		r.logDropped()
	}
}

// flush sends what waits when ctx has ended, without trying anything again.
func (r *Recorder) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endGrace)
	defer cancel()
	for event := r.nextQueued(); event != nil; event = r.nextQueued() {
		known, ok := r.correlator.correlate(event)
		if !ok {
			continue
		}
		if err := r.send(ctx, event, known); err != nil {
			r.logger.Warn("events are lost, because the program ends", zap.Int("count", 1+len(r.queue)+r.delayed.len()), zap.Error(err))
			return
		}
	}
}

// nextQueued is the next event, whether or not its turn has come; nil if there is none.
func (r *Recorder) nextQueued() *core.Event {
	select {
	case event := <-r.queue:
		return event
	default:
	}
	if some, _ := r.delayed.due(r.clock.Now()); some {
		return r.takeDelayed()
	}
	return nil
}

// withGrace returns a context that ends when ctx has been over for as long as
// grace.
func withGrace(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return lasting, func() {
		stop()
		cancel()
	}
}

// logDropped says how many were dropped, once those that waited are sent.
func (r *Recorder) logDropped() {
	if len(r.queue) > 0 {
		return
	}
	if n := r.dropped.Swap(0); n > 0 {
		r.logger.Warn("events were dropped", zap.Int64("count", n))
	}
}

// sendWithRetry sends an event, again and again where that may help. If ctx ends
// meanwhile, the current attempt may still finish.
func (r *Recorder) sendWithRetry(ctx context.Context, event *core.Event, known bool) {
	lasting, cancel := withGrace(ctx, endGrace)
	defer cancel()
	for try := 1; ; try++ {
		err := r.send(lasting, event, known)
		if err == nil || ctx.Err() != nil {
			return
		}
		var status apierrors.APIStatus
		refused := errors.As(err, &status) && !apierrors.IsServerTimeout(err) && !apierrors.IsInternalError(err) &&
			!apierrors.IsTooManyRequests(err) && !apierrors.IsServiceUnavailable(err)
		if refused && apierrors.IsNotFound(err) && known {
			known = false // it expired on the server: create it again
			event.ResourceVersion = ""
			continue
		}
		if refused || try >= maxTries {
			r.logger.Warn("event could not be sent",
				zap.String("object", event.InvolvedObject.Namespace+"/"+event.InvolvedObject.Name), zap.String("reason", event.Reason), zap.Error(err))
			return
		}
		if backoff.Sleep(ctx, r.clock, sendPolicy.Delay(try)) != nil {
			return
		}
	}
}

// send creates the event, or counts up the one that is there.
func (r *Recorder) send(ctx context.Context, event *core.Event, known bool) error {
	resource := r.client.Resource(core.Events, event.Namespace)
	if !known {
		err := resource.Create(ctx, event, nil)
		if apierrors.IsAlreadyExists(err) {
			return nil // an earlier attempt succeeded and its answer was lost: no other event can have this name
		}
		return err
	}
	patch, err := json.Marshal(map[string]any{
		"count": event.Count, "message": event.Message, "lastTimestamp": event.LastTimestamp,
	})
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	return resource.Patch(ctx, event.Name, types.StrategicMergePatchType, patch, nil)
}

// eventName shortens the object's name to leave room for the suffix: an
// object's name may be as long as an event's.
func eventName(object string, at int64) string {
	suffix := fmt.Sprintf(".%x", at)
	if room := validation.DNS1123SubdomainMaxLength - len(suffix); len(object) > room {
		object = strings.TrimRight(object[:room], "-.")
	}
	return object + suffix
}
