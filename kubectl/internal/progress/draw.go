package progress

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/utils/clock"

	"kctl/kubectl/internal/printer"
)

// Display draws views as they change.
type Display interface {
	Show(view View)
	// Tick redraws moving parts.
	Tick()
	// Close leaves the terminal as a program that comes after expects it.
	Close()
}

// Plain writes a line for each step that is done, for each slow step that has
// begun, and for each new problem.
type Plain struct {
	Out io.Writer

	written map[string]bool
}

// Show writes what is new.
func (p *Plain) Show(view View) {
	if p.written == nil {
		p.written = map[string]bool{}
	}
	for _, s := range view.Steps {
		if s.State == Done || s.State == Active && s.Slow {
			p.once(s.Text)
		}
	}
	if view.Problem != "" {
		p.once(view.Problem)
	}
}

func (p *Plain) once(text string) {
	if !p.written[text] {
		p.written[text] = true
		fmt.Fprintln(p.Out, printer.Visible(text))
	}
}

// Tick does nothing: lines stay.
func (p *Plain) Tick() {}

// Close does nothing.
func (p *Plain) Close() {}

// Live draws on a terminal: steps that are done stay as lines with the time
// they took; below them, one line says what is under way and, once known, why
// it is stuck. A reason that is too long for that line gets lines of its own first,
// which stay: its end is often what matters ("not found").
type Live struct {
	Out   io.Writer
	Width int
	Color bool
	Clock clock.PassiveClock

	began, last time.Time
	printed     int // steps that have their lasting line
	view        View
	pending     string          // the moving line, as it is on the screen
	told        map[string]bool // problems that have lines of their own
}

const clearLine = "\r\x1b[K"

// Show draws the view.
func (l *Live) Show(view View) {
	now := l.Clock.Now()
	if l.began.IsZero() {
		l.began, l.last = now, now
	}
	l.view = view
	for l.printed < len(view.Steps) && view.Steps[l.printed].State == Done {
		took := now.Sub(l.last)
		l.last = now
		l.clear()
		fmt.Fprintf(l.Out, "%s %s  %s\n", l.paint("32", "✓"), view.Steps[l.printed].Text, l.paint("2", took.Round(time.Millisecond).String()))
		l.printed++
	}
	l.Tick()
}

// Tick draws the moving line.
func (l *Live) Tick() {
	if l.view.Ended || l.printed >= len(l.view.Steps) {
		l.clear()
		return
	}
	elapsed := l.Clock.Since(l.last).Round(100 * time.Millisecond)
	text := fmt.Sprintf("… %s  %s", l.view.Steps[l.printed].Text, elapsed)
	color := "2"
	if l.view.Problem != "" {
		text, color = text+"  "+printer.Visible(strings.ReplaceAll(l.view.Problem, "\n", " ")), "33"
		l.tellLong(text)
	}
	line := l.paint(color, truncate(text, l.Width-1))
	if l.pending == line {
		return
	}
	fmt.Fprint(l.Out, clearLine+line)
	l.pending = line
}

// tellLong writes a new problem out if the moving line has no room for it. What
// only tells how long to wait before the next attempt is no new problem.
func (l *Live) tellLong(line string) {
	problem := backoffTime.ReplaceAllString(l.view.Problem, "back-off")
	if l.told[problem] || truncate(line, l.Width-1) == line {
		return
	}
	if l.told == nil {
		l.told = map[string]bool{}
	}
	l.told[problem] = true
	l.clear()
	fmt.Fprintln(l.Out, l.paint("33", "! "+printer.Visible(l.view.Problem)))
}

var backoffTime = regexp.MustCompile(`back-off \S+`)

// Close clears the moving line.
func (l *Live) Close() { l.clear() }

func (l *Live) clear() {
	if l.pending != "" {
		fmt.Fprint(l.Out, clearLine)
		l.pending = ""
	}
}

func (l *Live) paint(color, text string) string {
	if !l.Color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// truncate keeps a text on one line of the terminal: a wrapped line could not be
// cleared again.
func truncate(text string, width int) string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}
