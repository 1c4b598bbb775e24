package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/negotiation"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/storage/cache"
	"kctl/proto/core"
)

// defaultWatchTime is how long a watch without timeoutSeconds lasts: between
// this and twice this, so that clients do not all come back at once. Upstream's.
const defaultWatchTime = 30 * time.Minute

// eventBatchDelay is how long events are collected after a write before the next one. A
// write costs this server and its client several times as much as an event in it; a
// client that sees fewer than hundreds of events a second never waits.
const eventBatchDelay = 2 * time.Millisecond

// eventWriteTimeout is how long a client may take to read one event while other
// requests wait for its seat.
const eventWriteTimeout = time.Minute

// watch follows a collection until the client goes or its time is up. listOptions has
// checked q.
func (c *call) watch(o registry.ListOptions, q *query) error {
	least := cmp.Or(c.WatchTime, defaultWatchTime)
	timeout := least + rand.N(least)
	if seconds := q.int64("timeoutSeconds"); seconds != nil && *seconds != 0 {
		timeout = core.Seconds(max(*seconds, 1))
	}
	f, err := c.negotiateStream()
	if err == nil && f.as == asTable {
		_, err = c.includeObject()
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.ctx, timeout)
	defer cancel()
	events := &stream{call: c, form: f, meter: c.Meter.eventsOf(c.resource)}
	o.InitialEventsSent, o.BatchDelay = events.initialEventsDone(c.timeInitialEvents(&o, request.Begun(ctx))), eventBatchDelay
	watcher, err := c.store.Watch(ctx, c.namespace, o)
	var source iter.Seq2[registry.WatchEvent, bool]
	switch {
	case apierrors.IsResourceExpired(err), apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		// Upstream sends this as an event, and clients look for it there.
		source = errorEvent(err)
	case err != nil:
		return err
	default:
		source = watcher.Events()
	}
	if wsstream.IsWebSocketRequest(c.gin.Request) {
		events.followOverWebSocket(source, cancel)
		return nil
	}
	if o.SendInitialEvents != nil && *o.SendInitialEvents && negotiation.AcceptsGzip(c.gin.Request) {
		return events.followCompressed(source)
	}
	return events.follow(source, plainStream{c.gin.Writer})
}

// timeInitialEvents wraps leave: if the watch stands for a list, it first records how long the
// initial events took.
func (c *call) timeInitialEvents(o *registry.ListOptions, leave func()) func() {
	if c.Meter == nil || !ptr.Deref(o.SendInitialEvents, false) {
		return leave
	}
	scope := "cluster"
	if c.namespace != "" {
		scope = "namespace"
	}
	if o.Fields != nil {
		if _, one := o.Fields.RequiresExactMatch("metadata.name"); one {
			scope = "resource"
		}
	}
	took := c.Meter.lists.WithLabelValues(c.resource.Group, c.resource.Version, c.resource.Name, scope)
	return func() {
		took.Observe(c.Clock.Since(request.ReceivedFrom(c.ctx)).Seconds())
		if leave != nil {
			leave()
		}
	}
}

// follow sends events as one endless answer. Events that are ready at the same
// time go in one write.
func (s *stream) follow(events iter.Seq2[registry.WatchEvent, bool], to streamWriter) error {
	s.to = to
	s.writeHeader()
	for event, more := range events {
		if err := s.limitInitialEventTime(); err != nil {
			return err
		}
		if err := s.send(event); err != nil {
			return err
		}
		if !more {
			if err := s.to.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stream) followCompressed(events iter.Seq2[registry.WatchEvent, bool]) error {
	header := s.gin.Writer.Header()
	header.Set("Content-Encoding", "gzip")
	header.Add("Vary", "Accept-Encoding")
	to := &gzipStream{to: plainStream{s.gin.Writer}, initialSent: &s.initialEventsSent}
	defer func() { _ = to.Flush() }() // the watch may have ended between two events of a member
	return s.follow(events, to)
}

// limitInitialEventTime bounds how long the client may take for the next one of the initial events:
// until it has them all, it holds a seat for which others wait. After that it may
// take its time, as a paused terminal does.
func (s *stream) limitInitialEventTime() error {
	now := time.Now()
	if s.initialEventsSent || now.Sub(s.deadlineSet) < eventWriteTimeout/4 {
		return nil
	}
	s.deadlineSet = now
	return s.setWriteDeadline(now.Add(eventWriteTimeout))
}

// initialEventsDone returns what is called when all initial events have been sent.
func (s *stream) initialEventsDone(leave func()) func() {
	return func() {
		s.initialEventsSent = true
		if !s.deadlineSet.IsZero() {
			_ = s.setWriteDeadline(time.Time{}) // the next event notices a client that is gone
		}
		if leave != nil {
			leave()
		}
	}
}

func (s *stream) setWriteDeadline(end time.Time) error {
	if err := http.NewResponseController(s.gin.Writer).SetWriteDeadline(end); err != nil {
		return fmt.Errorf("bound how long a watch's client may take: %w", err)
	}
	return nil
}

// stream writes watch events.
type stream struct {
	*call
	form  form
	meter eventMeter
	to    streamWriter
	// initialEventsSent: the client has the initial events. Until then, deadlineSet is when its
	// deadline was last set.
	initialEventsSent bool
	deadlineSet       time.Time
	// columnsSent: only a table's first event has the columns.
	columnsSent bool
}

func (s *stream) writeHeader() {
	contentType := s.form.media
	if contentType == runtime.ContentTypeProtobuf {
		contentType += ";stream=watch"
	}
	header := s.gin.Writer.Header()
	header.Set("Content-Type", contentType)
	header.Set("X-Content-Type-Options", "nosniff")
	s.gin.Writer.WriteHeader(http.StatusOK)
	s.gin.Writer.Flush()
}

func (s *stream) send(event registry.WatchEvent) error {
	framed, err := s.frame(event)
	if err != nil {
		return err
	}
	if _, err := s.to.Write(framed); err != nil {
		return fmt.Errorf("write watch event: %w", err)
	}
	s.meter.observe(len(framed))
	return nil
}

// frame is the event as it is sent.
func (s *stream) frame(event registry.WatchEvent) ([]byte, error) {
	if s.form.plain() {
		if event.Frame != nil {
			return event.Frame, nil
		}
		return jsonFrame(event.Type, event.Object.JSON), nil
	}
	protobuf := s.form.media == runtime.ContentTypeProtobuf
	if protobuf && event.Type != cache.Error && event.Type != cache.Bookmark {
		return s.protobufEvent(s.form, event)
	}
	object, err := s.object(event)
	if err != nil {
		return nil, err
	}
	if protobuf {
		return framed(event.Type, object), nil
	}
	return jsonFrame(event.Type, object), nil
}

// object is the event's object in the stream's form.
func (s *stream) object(event registry.WatchEvent) ([]byte, error) {
	switch {
	case event.Type == cache.Error:
		var status metav1.Status
		if err := json.Unmarshal(event.Object.JSON, &status); err != nil {
			return nil, fmt.Errorf("decode status: %w", err)
		}
		return marshal(form{media: s.form.media}, &status)
	case s.form.as == asTable:
		return s.tableEvent(event)
	case event.Type == cache.Bookmark:
		var err error
		if event.Object, err = registry.WithoutDefaults(s.store, event.Object); err != nil {
			return nil, err
		}
	}
	return s.transform(s.form, event.Object)
}

func (s *stream) tableEvent(event registry.WatchEvent) ([]byte, error) {
	items := []registry.Encoded{event.Object}
	table, err := s.table(s.form, items)
	if err != nil {
		return nil, err
	}
	table.ResourceVersion = fmt.Sprint(event.Object.Revision)
	if s.columnsSent {
		table.ColumnDefinitions = nil
	}
	s.columnsSent = true
	return marshal(s.form, table)
}

func jsonFrame(kind string, object []byte) []byte {
	framed := make([]byte, 0, len(object)+len(kind)+24)
	framed = append(framed, `{"type":"`...)
	framed = append(framed, kind...)
	framed = append(framed, `","object":`...)
	framed = append(framed, object...)
	if n := len(framed); framed[n-1] == '\n' {
		framed = framed[:n-1]
	}
	return append(framed, "}\n"...)
}
