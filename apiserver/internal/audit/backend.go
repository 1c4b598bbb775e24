package audit

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// A Backend delivers events somewhere, several at once.
type Backend interface {
	// Name is upstream's name: log or webhook.
	Name() string
	// Parallel is how many batches may be delivered at once.
	Parallel() int
	// Deliver may try several times, with pauses between, until patient ends: then once more at most.
	Deliver(ctx, patient context.Context, events []*Event) error
	io.Closer
}

// The modes in which a backend is used.
const (
	ModeBatch          = "batch"
	ModeBlocking       = "blocking"
	ModeBlockingStrict = "blocking-strict"
)

// BatchOptions say how events are batched in ModeBatch.
type BatchOptions struct {
	BufferSize     int
	MaxSize        int
	MaxWait        time.Duration
	ThrottleEnable bool
	ThrottleQPS    float32
	ThrottleBurst  int
}

// SinkOptions say how a backend is used.
type SinkOptions struct {
	Mode     string
	Batch    BatchOptions
	Truncate TruncateOptions
}

// deliverTimeout bounds the final writes at shutdown: those that wait for a place have what is
// left of it. It is as long as one attempt may take.
const deliverTimeout = 30 * time.Second

// NewSink returns a sink that uses backend as o says. The sink closes it.
func NewSink(backend Backend, o SinkOptions, lost *prometheus.CounterVec, clock clock.WithTicker, logger *zap.Logger) Sink {
	d := &delivery{
		backend: backend, truncate: o.Truncate, lost: lost.WithLabelValues(backend.Name()),
		logger: logger.Named("audit-" + backend.Name()),
	}
	if o.Mode == ModeBatch {
		b := &batching{delivery: d, o: o.Batch, clock: clock, queue: make(chan *Event, o.Batch.BufferSize),
			places: make(chan struct{}, backend.Parallel())}
		if o.Batch.ThrottleEnable {
			b.limiter = rate.NewLimiter(rate.Limit(o.Batch.ThrottleQPS), o.Batch.ThrottleBurst)
		}
		return b
	}
	return &blocking{delivery: d, strict: o.Mode == ModeBlockingStrict}
}

// delivery passes events to a backend and counts lost ones.
type delivery struct {
	backend  Backend
	truncate TruncateOptions
	lost     prometheus.Counter
	logger   *zap.Logger
}

func (d *delivery) deliver(ctx, patient context.Context, events []*Event) bool {
	whole := true
	for _, part := range d.truncate.split(events, func(dropped *Event) {
		whole = false
		d.lose(1, errors.New("the event is larger than the maximum batch size"))
	}) {
		if err := d.backend.Deliver(ctx, patient, part); err != nil {
			d.lose(len(part), err)
			whole = false
		}
	}
	return whole
}

func (d *delivery) lose(events int, err error) {
	d.lost.Add(float64(events))
	d.logger.Error("audit events lost", zap.Int("events", events), zap.Error(err))
}

// blocking delivers each event while its request waits.
type blocking struct {
	*delivery
	strict bool
}

func (b *blocking) Strict() bool { return b.strict }

func (b *blocking) Write(e *Event) bool {
	always := context.Background() // the end of a request must not prevent the write
	return b.deliver(always, always, []*Event{e})
}

func (b *blocking) Run(ctx context.Context) error {
	<-ctx.Done()
	return errors.Join(ctx.Err(), b.backend.Close())
}

// batching collects events; requests don't wait.
type batching struct {
	*delivery
	o       BatchOptions
	clock   clock.WithTicker
	limiter *rate.Limiter
	places  chan struct{} // one for each batch under way

	mu    sync.RWMutex
	ended bool
	queue chan *Event
}

func (b *batching) Strict() bool { return false }

func (b *batching) Write(e *Event) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.ended {
		b.lose(1, errors.New("the server is shutting down"))
		return false
	}
	select {
	case b.queue <- e:
		return true
	default:
		b.lose(1, errors.New("the buffer is full"))
		return false
	}
}

func (b *batching) Run(ctx context.Context) error {
	// What is under way when ctx ends is delivered all the same.
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	for {
		events := b.gather(ctx)
		if len(events) > 0 && b.pace(ctx) {
			b.send(sending, ctx, events)
			continue
		}
		if ctx.Err() != nil {
			last, cancel := context.WithTimeout(sending, deliverTimeout)
			defer cancel()
			context.AfterFunc(last, stop)
			b.finish(sending, ctx, events)
			return errors.Join(ctx.Err(), b.backend.Close())
		}
	}
}

// pace waits for the throttle and takes a place; false if ctx ends meanwhile.
func (b *batching) pace(ctx context.Context) bool {
	if ctx.Err() != nil || b.limiter != nil && b.limiter.Wait(ctx) != nil {
		return false
	}
	select {
	case b.places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// send delivers a batch for which a place is taken, while the next one is gathered: a receiver
// that fails is tried for minutes.
func (b *batching) send(ctx, patient context.Context, events []*Event) {
	go func() {
		defer func() { <-b.places }()
		b.deliver(ctx, patient, events)
	}()
}

// gather collects events until a batch is full or its time is up.
func (b *batching) gather(ctx context.Context) []*Event {
	var events []*Event
	var late <-chan time.Time
	if b.o.MaxWait > 0 {
		timer := b.clock.NewTimer(b.o.MaxWait)
		defer timer.Stop()
		late = timer.C()
	}
	for len(events) < b.o.MaxSize {
		select {
		case e := <-b.queue:
			events = append(events, e)
		case <-late:
			return events
		case <-ctx.Done():
			return events
		}
	}
	return events
}

// finish writes what is left, without a throttle, and waits for all that is under way.
func (b *batching) finish(ctx, patient context.Context, events []*Event) {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	close(b.queue)
	flush := func() {
		b.places <- struct{}{} // those who have one give it back when ctx ends, at the latest
		b.send(ctx, patient, events)
		events = nil
	}
	for e := range b.queue {
		if events = append(events, e); len(events) >= b.o.MaxSize {
			flush()
		}
	}
	if len(events) > 0 {
		flush()
	}
	for range cap(b.places) {
		b.places <- struct{}{}
	}
}
