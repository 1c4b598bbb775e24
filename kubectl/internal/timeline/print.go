package timeline

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Print writes the timeline as a waterfall: for each moment its leg, its
// program, the milliseconds since the first moment, its duration, and a bar
// from what it waited for to itself. width is the width of the bars.
func (t Timeline) Print(w io.Writer, width int) error { return t.print(w, t.whatWidth(), width) }

const (
	besideWhat = 41 // the width of all columns but WHAT and the bars, with the space between them
	leastWhat  = 28 // holds all that moments are called, without containers
	leastBars  = 8
	mostBars   = 80
)

// PrintIn writes the waterfall on a terminal so wide that no line is broken: the bars have
// what the columns leave, and long names of containers are cut if that is too little.
func (t Timeline) PrintIn(w io.Writer, columns int) error {
	over := t.overWidth()
	left := columns - 1 - besideWhat - over // some terminals break a line that is full
	what := min(t.whatWidth(), max(left-leastBars, leastWhat))
	return t.print(w, what, min(max(left-what, leastBars-over, 1), mostBars))
}

func (t Timeline) print(w io.Writer, what, width int) error {
	if err := printHead(w, what, true); err != nil {
		return err
	}
	for _, row := range t.Rows {
		line := row.line(cut(row.text(), what), what)
		if bar := t.bar(row, width); strings.TrimSpace(bar) != "" {
			line += "  " + bar
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// followWidth is the width of the descriptions when rows are printed before all
// are known.
const followWidth = 32

// PrintHead writes the header for PrintRow.
func PrintHead(w io.Writer) error { return printHead(w, followWidth, false) }

// PrintRow writes one row, without a bar: while rows keep coming, the total is
// unknown.
func PrintRow(w io.Writer, row Row) error {
	_, err := fmt.Fprintln(w, row.line(row.text(), followWidth))
	return err
}

func printHead(w io.Writer, what int, bars bool) error {
	head := fmt.Sprintf("%3s  %-9s  %-*s  %10s  %9s", "LEG", "WHO", what, "WHAT", "AT ms", "TOOK ms")
	if bars {
		head += "  |"
	}
	_, err := fmt.Fprintln(w, head)
	return err
}

func (r Row) line(text string, what int) string {
	leg := "-"
	if r.Leg > 0 {
		leg = fmt.Sprint(r.Leg)
	}
	return fmt.Sprintf("%3s  %-9s  %-*s  %10s  %9s", leg, r.Who, what, text, r.mark(r.Offset), milliseconds(r.Took))
}

func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

func (r Row) text() string {
	if r.Container != "" {
		return r.What + ": " + r.Container
	}
	return r.What
}

func (r Row) mark(d time.Duration) string {
	if r.Approximate {
		return "~" + milliseconds(d)
	}
	return milliseconds(d)
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond))
}

func (t Timeline) whatWidth() int {
	width := len("WHAT")
	for _, row := range t.Rows {
		width = max(width, utf8.RuneCountInString(row.text()))
	}
	return width
}

// overWidth is by how much times of many hours are wider than their columns.
func (t Timeline) overWidth() (width int) {
	for _, row := range t.Rows {
		width = max(width, utf8.RuneCountInString(row.line("", 0))-(besideWhat-len("  "))) // less the space before the bar
	}
	return width
}

// bar is at least one mark long, even if the moment took no time.
func (t Timeline) bar(row Row, width int) string {
	if t.Total <= 0 || width <= 0 {
		return ""
	}
	scale := func(d time.Duration) int { return int(math.Round(float64(d) / float64(t.Total) * float64(width))) }
	from, to := scale(row.Offset-row.Took), scale(row.Offset)
	if to <= from {
		mark := min(max(from, 0), width-1)
		return strings.Repeat(" ", mark) + "▏"
	}
	return strings.Repeat(" ", from) + strings.Repeat("█", to-from)
}
