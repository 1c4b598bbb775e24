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
	widths []int // with the padding
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

// Flush writes the rows added since the last Flush. A text of several lines ends its row,
// and begins another one, as a tab ends its cell.
func (c *Columns) Flush(w io.Writer) error {
	var lines [][]string
	for _, row := range c.rows {
		for line := range strings.SplitSeq(strings.Join(row, "\t"), "\n") {
			lines = append(lines, strings.Split(line, "\t"))
		}
	}
	c.rows = nil
	stretches := [][][]string{lines}
	for column := 0; len(stretches) > 0; column++ {
		var within [][][]string
		for _, stretch := range stretches {
			within = append(within, c.align(stretch, column)...)
		}
		stretches = within
	}
	var b strings.Builder
	for _, line := range lines {
		for _, cell := range line {
			b.WriteString(cell)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// align pads a column's cells, and returns the stretches of lines that have it. The last cell
// of a line belongs to no column. Lines that have no such cell end a stretch of others: those
// below know the widths above, and not the other way round.
func (c *Columns) align(lines [][]string, column int) (stretches [][][]string) {
	has := func(line []string) bool { return len(line) > column+1 }
	for from := 0; from < len(lines); from++ {
		if !has(lines[from]) {
			continue
		}
		if column == len(c.widths) {
			c.widths = append(c.widths, minWidth)
		}
		until := from
		for ; until < len(lines) && has(lines[until]); until++ {
			c.widths[column] = max(c.widths[column], utf8.RuneCountInString(lines[until][column])+cmp.Or(c.Padding, padding))
		}
		for _, line := range lines[from:until] {
			line[column] += strings.Repeat(" ", c.widths[column]-utf8.RuneCountInString(line[column]))
		}
		stretches = append(stretches, lines[from:until])
		from = until
	}
	return stretches
}
