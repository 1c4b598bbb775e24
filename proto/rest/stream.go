package rest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Event is one event of a watch; Object is still encoded, and valid until the
// stream is asked for the next one.
type Event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// Stream is an open watch.
type Stream struct {
	body  io.ReadCloser
	lines *bufio.Reader
	long  []byte // the last line, if it is longer than the buffer of lines
	// decoder takes over when an event is not a line of the usual form.
	decoder *json.Decoder
}

const (
	lineBuffer      = 16 << 10  // holds most events
	smallLineBuffer = 1 << 10   // for watches with few
	maxKept         = 256 << 10 // of the memory for what is longer
)

func newStream(body io.ReadCloser, buffer int) *Stream {
	return &Stream{body: body, lines: bufio.NewReaderSize(body, buffer)}
}

// ErrNoEvent says that the server sent something else on a watch: it would send that
// again for the same revision.
var ErrNoEvent = errors.New("not a watch event")

// Next waits for the next event. It returns io.EOF when the server ends the
// watch. It does not check that the object is JSON; decoding it does.
func (s *Stream) Next() (Event, error) {
	if s.decoder == nil {
		line, err := s.line()
		if err != nil && !errors.Is(err, io.EOF) {
			return Event{}, err
		}
		if event, ok := splitEvent(line); ok {
			return event, nil
		}
		s.decoder = json.NewDecoder(io.MultiReader(bytes.NewReader(bytes.Clone(line)), s.lines))
	}
	var e Event
	err := s.decoder.Decode(&e)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		err = fmt.Errorf("%w: %w", ErrNoEvent, err)
	}
	return e, err
}

// line reads a line into memory that the next line reuses.
func (s *Stream) line() ([]byte, error) {
	part, err := s.lines.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return part, err
	}
	s.long = s.long[:0]
	for ; errors.Is(err, bufio.ErrBufferFull); part, err = s.lines.ReadSlice('\n') {
		s.long = append(s.long, part...)
	}
	s.long = append(s.long, part...)
	line := s.long
	if cap(line) > maxKept {
		s.long = nil
	}
	return line, err
}

var (
	typePrefix   = []byte(`{"type":"`)
	objectPrefix = []byte(`","object":`)
	eventEnd     = []byte("}\n")
)

// splitEvent splits an event in the form that servers write, without looking into
// the object: decoding that is most of the work of a watch, and must be done
// only once.
func splitEvent(line []byte) (Event, bool) {
	rest, ok := bytes.CutPrefix(line, typePrefix)
	if !ok {
		return Event{}, false
	}
	if rest, ok = bytes.CutSuffix(rest, eventEnd); !ok {
		return Event{}, false
	}
	name, object, ok := bytes.Cut(rest, objectPrefix)
	if !ok || !bytes.HasPrefix(object, []byte("{")) || !bytes.HasSuffix(object, []byte("}")) || bytes.ContainsAny(name, `"\`) {
		return Event{}, false
	}
	return Event{Type: string(name), Object: object}, true
}

// Close ends the watch; a Next under way returns.
func (s *Stream) Close() error { return s.body.Close() }
