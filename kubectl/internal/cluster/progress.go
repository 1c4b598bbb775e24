package cluster

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Progress shows the steps of up and down as they are taken.
type Progress interface {
	// Step runs do and shows how it went; do's string is a short note on the result.
	Step(name string, do func() (string, error)) error
}

// Lines is a Progress that writes one line for each step when it is done, with
// its duration. It is safe for concurrent use.
type Lines struct {
	Out      io.Writer
	Terminal bool // Out is one: a step under way is shown, too

	mu sync.Mutex
}

// Step implements Progress.
func (p *Lines) Step(name string, do func() (string, error)) error {
	if p.Terminal {
		p.print("  … %s\r", name)
	}
	begin := time.Now()
	word, err := do()
	took := time.Since(begin).Round(time.Millisecond)
	switch {
	case err != nil:
		p.print("  ✗ %-30s %8s\n", name, took)
		return fmt.Errorf("%s: %w", name, err)
	case word != "":
		p.print("  ✓ %-30s %8s  %s\n", name, took, word)
	default:
		p.print("  ✓ %-30s %8s\n", name, took)
	}
	return nil
}

func (p *Lines) print(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Terminal {
		format = "\x1b[2K" + format
	}
	fmt.Fprintf(p.Out, format, args...)
}
