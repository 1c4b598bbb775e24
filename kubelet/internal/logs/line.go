package logs

import (
	"bytes"
	"fmt"
	"time"
)

// line is one line of a log file, in pieces that share its memory.
type line struct {
	time   []byte
	stream stream
	// partial says that the text goes on in the next line of the same stream.
	partial bool
	text    []byte // without the newline
}

// stream is a container's output stream.
type stream int

const (
	stdout stream = iota
	stderr
)

var streamNames = [...]string{stdout: "stdout", stderr: "stderr"}

// maxLine is more than a runtime writes in one piece; longer lines are not from
// a runtime, and the excess is dropped.
const maxLine = 1 << 20

// parseLine reads one line; its newline may be missing.
func parseLine(raw []byte) (line, error) {
	raw = bytes.TrimSuffix(raw, []byte{'\n'})
	when, rest, ok := bytes.Cut(raw, []byte{' '})
	name, rest, ok2 := bytes.Cut(rest, []byte{' '})
	tags, text, ok3 := bytes.Cut(rest, []byte{' '})
	if !ok3 {
		// A line without text may lack the space before it.
		tags, ok3 = rest, len(rest) > 0
	}
	if !ok || !ok2 || !ok3 {
		return line{}, fmt.Errorf("log line %.60q is not of the form TIME STREAM TAGS TEXT", raw)
	}
	from := stdout
	switch string(name) {
	case streamNames[stdout]:
	case streamNames[stderr]:
		from = stderr
	default:
		return line{}, fmt.Errorf("log line %.60q is of neither stdout nor stderr", raw)
	}
	// The first of the tags, which colons divide, says whether the line is whole.
	tag, _, _ := bytes.Cut(tags, []byte{':'})
	switch string(tag) {
	case "F":
		return line{when, from, false, text}, nil
	case "P":
		return line{when, from, true, text}, nil
	}
	return line{}, fmt.Errorf("log line %.60q is neither whole (F) nor a part (P)", raw)
}

func (l line) at() (time.Time, error) { return time.Parse(time.RFC3339Nano, string(l.time)) }

// endsLine tells by the beginning of a raw line whether it ends a line of the
// container's output. An unreadable one counts as a line of its own.
func endsLine(head []byte) bool {
	for range 2 {
		i := bytes.IndexByte(head, ' ')
		if i < 0 {
			return true
		}
		head = head[i+1:]
	}
	return len(head) == 0 || head[0] != 'P'
}
