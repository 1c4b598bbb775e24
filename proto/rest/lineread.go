package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/http2"
)

// read takes what the server sends until the connection ends.
func (l *line) read() {
	var deadline time.Time
	unread := uint32(0) // bytes that the server has not heard are read
	for {
		if now := l.clock.Now(); deadline.Sub(now) < lineSilence-time.Second { // not for each frame
			deadline = now.Add(lineSilence)
			_ = l.conn.SetReadDeadline(deadline) // reading tells
		}
		frame, err := l.framer.ReadFrame()
		var ofOne http2.StreamError
		if errors.As(err, &ofOne) {
			l.settle(ofOne.StreamID, func(x *exchange) error { return fmt.Errorf("answer: %w", ofOne) })
			continue
		}
		if err != nil {
			l.end(fmt.Errorf("read: %w", err))
			return
		}
		l.heard.Store(l.clock.Now().UnixNano())
		if data, ok := frame.(*http2.DataFrame); ok {
			unread += data.Length
		}
		if unread > lineWindow/2 {
			l.control(func() error { return l.framer.WriteWindowUpdate(0, unread) })
			unread = 0
		}
		l.take(frame)
	}
}

func (l *line) take(frame http2.Frame) {
	switch f := frame.(type) {
	case *http2.MetaHeadersFrame:
		l.takeHeaders(f)
	case *http2.DataFrame:
		l.settle(f.StreamID, func(x *exchange) error {
			if len(x.body)+len(f.Data()) > maxBriefAnswer {
				return fmt.Errorf("answer: more than %d bytes", maxBriefAnswer)
			}
			x.body = append(x.body, f.Data()...)
			return answered(f.StreamEnded())
		})
	case *http2.RSTStreamFrame:
		l.settle(f.StreamID, func(*exchange) error {
			if f.ErrCode == http2.ErrCodeRefusedStream {
				return errElsewhere
			}
			return fmt.Errorf("the server gave the request up: %v", f.ErrCode)
		})
	case *http2.GoAwayFrame:
		l.drain(f.LastStreamID)
	case *http2.SettingsFrame:
		l.takeSettings(f)
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			l.mu.Lock()
			l.window += int64(f.Increment)
			l.mu.Unlock()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			l.control(func() error { return l.framer.WritePing(true, f.Data) })
		}
	}
}

// errAnswered says that an answer is complete.
var errAnswered = errors.New("answered")

func answered(complete bool) error {
	if complete {
		return errAnswered
	}
	return nil
}

// settle has take look at a request's next frame, whose error says what became of
// the request; nil if there is more to come.
func (l *line) settle(id uint32, take func(x *exchange) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.exchanges[id]
	if x == nil {
		return // nobody waits for it any more
	}
	switch err := take(x); {
	case err == nil:
	case errors.Is(err, errAnswered):
		l.finish(id, x, nil)
	default:
		l.finish(id, x, err)
	}
}

func (l *line) takeHeaders(f *http2.MetaHeadersFrame) {
	l.settle(f.StreamID, func(x *exchange) error {
		if x.status != 0 {
			return answered(f.StreamEnded()) // trailers
		}
		status, err := strconv.Atoi(f.PseudoValue("status"))
		switch {
		case err != nil || f.Truncated:
			return errors.New("answer: its headers can't be read")
		case status < http.StatusOK:
			return nil // the answer is to come
		}
		x.status, x.header = status, make(http.Header, len(f.Fields))
		for _, field := range f.RegularFields() {
			x.header.Add(field.Name, field.Value)
		}
		return answered(f.StreamEnded())
	})
}

func (l *line) takeSettings(f *http2.SettingsFrame) {
	if f.IsAck() {
		return
	}
	l.control(func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		return errors.Join(f.ForeachSetting(func(s http2.Setting) error {
			switch s.ID {
			case http2.SettingMaxConcurrentStreams:
				l.streams = int(min(s.Val, lineStreams))
			case http2.SettingInitialWindowSize:
				l.largest = int64(s.Val)
			case http2.SettingHeaderTableSize:
				l.headers.SetMaxDynamicTableSizeLimit(s.Val)
			}
			return nil
		}), l.framer.WriteSettingsAck())
	})
}
