package printer

import (
	"cmp"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The layout of kubectl's tables: columns at least minWidth wide, padding
// spaces between them, none behind the last.
const (
	minWidth = 6
	padding  = 3
)

// Columns aligns rows of cells. Rows are kept until Flush; the widths are
// remembered beyond it, so that rows that come later (of a watch) stay under
// their headers as long as they fit.
type Columns struct {
	Padding int // other than that of tables

	rows   [][]string
	widths []int
}

// Add appends a row.
func (c *Columns) Add(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = Visible(cell)
	}
	c.rows = append(c.rows, row)
}

// Visible makes control characters visible, except those that end lines and
// columns, so that the terminal does not obey them: the author of an event or
// annotation must not be able to overwrite what else an administrator reads.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return '^'
		}
		return r
	}, text)
}

// VisibleTo returns a writer that writes to w what Visible makes of each text.
func VisibleTo(w io.Writer) io.Writer { return sanitizingWriter{w} }

type sanitizingWriter struct{ to io.Writer }

func (v sanitizingWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(v.to, Visible(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Flush writes the rows added since the last Flush.
func (c *Columns) Flush(w io.Writer) error {
	for _, row := range c.rows {
		for i, cell := range row {
			if i == len(c.widths) {
				c.widths = append(c.widths, 0)
			}
			c.widths[i] = max(c.widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range c.rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				width := max(c.widths[i]+cmp.Or(c.Padding, padding), minWidth)
				b.WriteString(strings.Repeat(" ", width-utf8.RuneCountInString(cell)))
			}
		}
		b.WriteByte('\n')
	}
	c.rows = nil
	_, err := io.WriteString(w, b.String())
	return err
}
