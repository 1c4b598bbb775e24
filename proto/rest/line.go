package rest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/utils/clock"
)

const (
	// maxBrief is what every server takes in one frame.
	maxBrief = 16 << 10
	// maxBriefAnswer is what is read of an answer.
	maxBriefAnswer = 1 << 20
	// lineWindow is what a server may send before it hears that some was read.
	lineWindow = 1 << 30
	// lineStreams are under way at most, until the server says how many it takes.
	lineStreams = 100
	lastStream  = 1 << 30
)

// errElsewhere says that the server has done nothing about a request, which
// therefore can be sent by another connection.
var errElsewhere = errors.New("to be sent by another connection")

// A line is a connection for brief requests and nothing else (HTTP/2, RFC 9113).
// net/http is ready for bodies of any size, and takes a goroutine, two writes and
// a place in the table of headers for each; here a request is written at once,
// together with the others that are about to be, and its answer held in memory.
// It is safe for concurrent use; read is its one goroutine.
type line struct {
	conn   net.Conn
	framer *http2.Framer
	clock  clock.PassiveClock
	heard  atomic.Int64 // when a frame last came, in Unix nanoseconds

	writers atomic.Int64 // who wait to write: the last of them sends it all
	writing sync.Mutex   // guards what writes; taken before mu
	out     *bufio.Writer
	headers *hpack.Encoder
	block   bytes.Buffer
	next    uint32 // the stream to come

	mu        sync.Mutex
	exchanges map[uint32]*exchange
	window    int64 // bytes that the server takes of all requests
	largest   int64 // bytes that it takes of one
	streams   int
	err       error // why no more requests are taken
}

// exchange is a request under way, and its answer when done is closed.
type exchange struct {
	status int
	header http.Header
	body   []byte
	err    error
	done   chan struct{}
}

// newLine greets the server; read must be called.
func newLine(conn net.Conn, clock clock.PassiveClock) (*line, error) {
	l := &line{
		conn: conn, clock: clock, out: bufio.NewWriterSize(conn, 2*maxBrief), next: 1,
		exchanges: map[uint32]*exchange{}, window: 65535, largest: 65535, streams: lineStreams, // until the server says otherwise
	}
	l.heard.Store(clock.Now().UnixNano())
	l.framer = http2.NewFramer(l.out, bufio.NewReaderSize(conn, maxBrief))
	l.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	l.framer.SetReuseFrames()
	l.headers = hpack.NewEncoder(&l.block)
	_, preface := l.out.WriteString(http2.ClientPreface)
	return l, errors.Join(preface,
		l.framer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxBriefAnswer}),
		l.framer.WriteWindowUpdate(0, lineWindow),
		l.out.Flush())
}

// roundTrip sends a request with its body and waits for the answer.
func (l *line) roundTrip(r *http.Request, body []byte) (*http.Response, error) {
	x := &exchange{done: make(chan struct{})}
	id, err := l.send(r, body, x)
	if err != nil {
		return nil, err
	}
	select {
	case <-x.done:
	case <-r.Context().Done():
		l.leave(id)
		return nil, r.Context().Err()
	}
	if x.err != nil {
		return nil, x.err
	}
	return &http.Response{
		Status: strconv.Itoa(x.status) + " " + http.StatusText(x.status), StatusCode: x.status, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: x.header, Body: io.NopCloser(bytes.NewReader(x.body)), ContentLength: int64(len(x.body)), Request: r,
	}, nil
}

// send writes a request.
func (l *line) send(r *http.Request, body []byte, x *exchange) (id uint32, err error) {
	l.writers.Add(1)
	l.writing.Lock()
	defer l.writing.Unlock()
	if id, err = l.enter(int64(len(body)), x); err == nil {
		l.encode(r, len(body))
		err = l.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: l.block.Bytes(), EndHeaders: true, EndStream: len(body) == 0})
		if err == nil && len(body) > 0 {
			err = l.framer.WriteData(id, true, body)
		}
	}
	if l.writers.Add(-1) == 0 {
		err = errors.Join(err, l.out.Flush())
	}
	if err != nil && !errors.Is(err, errElsewhere) {
		l.end(fmt.Errorf("write: %w", err))
	}
	return id, err
}

// enter gives a request its stream, where there is room for it.
func (l *line) enter(size int64, x *exchange) (id uint32, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || size > min(l.window, l.largest, maxBrief) || len(l.exchanges) >= l.streams || l.next >= lastStream {
		return 0, errElsewhere
	}
	id = l.next
	l.next += 2
	l.window -= size
	l.exchanges[id] = x
	return id, nil
}

// encode writes a request's headers into block. What differs in each request is
// kept out of the table of headers, where it would push out what does not.
func (l *line) encode(r *http.Request, size int) {
	l.block.Reset()
	field := func(name, value string, own bool) {
		_ = l.headers.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: own}) // into memory
	}
	field(":method", r.Method, false)
	field(":scheme", r.URL.Scheme, false)
	field(":authority", r.Host, false)
	field(":path", r.URL.RequestURI(), true)
	for name, values := range r.Header {
		own := name != "Accept" && name != "Authorization" && name != "Content-Type" && name != "User-Agent"
		for _, value := range values {
			field(strings.ToLower(name), value, own)
		}
	}
	field("content-length", strconv.Itoa(size), true)
}

// leave tells the server that an answer is not waited for any more.
func (l *line) leave(id uint32) {
	l.mu.Lock()
	if x := l.exchanges[id]; x != nil {
		l.finish(id, x, errElsewhere) // nobody reads it
	}
	l.mu.Unlock()
	l.control(func() error { return l.framer.WriteRSTStream(id, http2.ErrCodeCancel) })
}

// control writes what is no request.
func (l *line) control(write func() error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := errors.Join(write(), l.out.Flush()); err != nil {
		l.end(fmt.Errorf("write: %w", err))
	}
}

// finish hands who waits for an answer what became of it. The last answer of a
// line that takes no more requests ends it.
func (l *line) finish(id uint32, x *exchange, err error) {
	x.err = err
	close(x.done)
	if delete(l.exchanges, id); l.err != nil && len(l.exchanges) == 0 {
		_ = l.conn.Close() // nothing is on it any more
	}
}

// end closes the line. Who waits for an answer does not know what the server did.
func (l *line) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	for id, x := range l.exchanges {
		l.finish(id, x, fmt.Errorf("connection broke: %w", err))
	}
	_ = l.conn.Close() // it may have broken
}

// drain takes no more requests, and gives those back that the server says it will
// not look at.
func (l *line) drain(last uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = errElsewhere
	for id, x := range l.exchanges {
		if id > last {
			l.finish(id, x, errElsewhere)
		}
	}
	if len(l.exchanges) == 0 {
		_ = l.conn.Close() // nothing is on it any more
	}
}

// usable reports whether the line takes requests: a server that has been silent
// may have forgotten it.
func (l *line) usable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil && l.clock.Now().UnixNano()-l.heard.Load() < int64(lineQuiet)
}

const (
	// lineQuiet is how long a line may have been silent to be used again; after
	// lineSilence it is closed, and what is under way on it given up.
	lineQuiet   = 20 * time.Second
	lineSilence = 40 * time.Second
)
