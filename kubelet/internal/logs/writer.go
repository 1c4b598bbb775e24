package logs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"
)

// timeFormat has all nine digits, so that lines are aligned.
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

var newline = []byte{'\n'}

// errLimit ends the reading when enough bytes were written.
var errLimit = errors.New("the byte limit is reached")

// writer writes the selected ones of the lines that it gets.
type writer struct {
	out     *bufio.Writer
	options Options
	left    int64   // bytes that may still be written; negative for any number
	inside  [2]bool // by stream: whether its last line was a part
}

func newWriter(out io.Writer, o Options) *writer {
	w := &writer{out: bufio.NewWriterSize(out, 32<<10), options: o, left: -1}
	if o.LimitBytes != nil {
		w.left = *o.LimitBytes
	}
	return w
}

// line writes one raw line, if it is selected. Unreadable lines are left out.
func (w *writer) line(raw []byte) error {
	l, err := parseLine(raw)
	if err != nil {
		return nil
	}
	if w.options.Stream != "" && w.options.Stream != streamNames[l.stream] {
		return nil
	}
	begins := !w.inside[l.stream]
	w.inside[l.stream] = l.partial
	var at time.Time
	if w.options.Timestamps || !w.options.Since.IsZero() {
		if at, err = l.at(); err != nil || at.Before(w.options.Since) {
			return nil
		}
	}
	if w.options.Timestamps && begins {
		if err := w.write(append(at.AppendFormat(nil, timeFormat), ' ')); err != nil {
			return err
		}
	}
	if err := w.write(l.text); err != nil || l.partial {
		return err
	}
	return w.write(newline)
}

// missing writes a line of our own about what the reader was too slow for.
func (w *writer) missing(files int) error {
	var text []byte
	if w.options.Timestamps {
		text = append(w.options.Clock.Now().UTC().AppendFormat(text, timeFormat), ' ')
	}
	return w.write(fmt.Appendf(text, "[kubelet: %d file(s) of this log were rotated away before they were read]\n", files))
}

func (w *writer) write(data []byte) error {
	if w.left >= 0 {
		if int64(len(data)) > w.left {
			data = data[:w.left]
		}
		w.left -= int64(len(data))
	}
	if _, err := w.out.Write(data); err != nil {
		return err
	}
	if w.left == 0 {
		return errLimit
	}
	return nil
}
