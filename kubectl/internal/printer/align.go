package printer

import (
	"io"
	"strings"
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
	rows   [][]string
	widths []int
}

// Add appends a row.
func (c *Columns) Add(cells ...string) { c.rows = append(c.rows, cells) }

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
				width := max(c.widths[i]+padding, minWidth)
				b.WriteString(strings.Repeat(" ", width-utf8.RuneCountInString(cell)))
			}
		}
		b.WriteByte('\n')
	}
	c.rows = nil
	_, err := io.WriteString(w, b.String())
	return err
}
