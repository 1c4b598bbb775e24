package pods

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"kctl/kubectl/internal/command/frame"
)

// endless is a line that ends when more has been read than may be kept of it.
type endless struct {
	read    int
	written *bytes.Buffer
}

var errKept = errors.New("nothing is written of the line")

func (e *endless) Read(p []byte) (int, error) {
	if e.read > 4*longestLine {
		if e.written.Len() == 0 {
			return 0, errKept
		}
		return copy(p, "\nnext\n"), io.EOF
	}
	e.read += len(p)
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A line without an end is written as it comes, with its prefix once.
func TestEndlessLine(t *testing.T) {
	out := &bytes.Buffer{}
	r := &logsOptions{CLI: &frame.CLI{Streams: frame.Streams{Out: out}}}
	from := &endless{written: out}
	if err := r.copyLines(bufio.NewReaderSize(from, longestLine), "[p] "); err != nil {
		t.Fatal(err)
	}
	if want := "[p] " + strings.Repeat("x", from.read) + "\n[p] next\n"; out.String() != want {
		t.Errorf("got %d bytes, want %d", out.Len(), len(want))
	}
}
