package describe

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
)

// page is a description being written: indented lines, each with a tab between label
// and value.
type page struct {
	tabs  io.Writer
	done  func() error // writes what was kept back
	level int
	now   time.Time

	pod    *metav1.ObjectMeta // what the environment of a pod's containers can name
	around Around
}

// newPage is a page whose values line up.
func newPage(w io.Writer, now time.Time) *page {
	aligned := tabwriter.NewWriter(printer.VisibleTo(w), 0, 8, 2, ' ', 0)
	return &page{tabs: aligned, done: aligned.Flush, now: now}
}

// line writes label and value. The tab is there for empty values too: a line
// without one would end the column.
func (p *page) line(label, format string, args ...any) {
	fmt.Fprintf(p.tabs, "%s%s:\t%s\n", strings.Repeat("  ", p.level), label, fmt.Sprintf(format, args...))
}

// head writes the label of the lines under it.
func (p *page) head(label string) { p.text("%s:", label) }

// text writes a line as it is.
func (p *page) text(format string, args ...any) {
	fmt.Fprintln(p.tabs, strings.Repeat("  ", p.level)+fmt.Sprintf(format, args...))
}

// under writes lines one level deeper.
func (p *page) under(write func()) {
	p.level++
	write()
	p.level--
}

// pairs writes a map, a pair a line, under one label.
func (p *page) pairs(label string, pairs map[string]string) {
	if len(pairs) == 0 {
		p.line(label, "<none>")
		return
	}
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		texts = append(texts, key+"="+pairs[key])
	}
	p.column(label, "", texts)
}

// noteWidth is how much of an annotation is shown in a line.
const noteWidth = 140

// annotations writes annotations, like pairs but with a colon between.
func (p *page) annotations(all map[string]string) {
	const label = "Annotations"
	notes := maps.Clone(all)
	delete(notes, corev1.LastAppliedConfigAnnotation) // of no interest to people
	if len(notes) == 0 {
		p.line(label, "<none>")
		return
	}
	for i, key := range slices.Sorted(maps.Keys(notes)) {
		head := strings.Repeat("  ", p.level) + label + ":"
		if i > 0 {
			head = ""
		}
		value := strings.TrimSuffix(notes[key], "\n")
		if len(key)+len(value)+2 <= noteWidth && !strings.Contains(value, "\n") {
			fmt.Fprintf(p.tabs, "%s\t%s: %s\n", head, key, value)
			continue
		}
		fmt.Fprintf(p.tabs, "%s\t%s:\n", head, key)
		for line := range strings.SplitSeq(value, "\n") {
			if line = "  " + line; len(line) > noteWidth {
				line = line[:noteWidth] + "..."
			}
			fmt.Fprintf(p.tabs, "\t%s\n", line)
		}
	}
}

// events writes the events, the oldest first; nothing if they are nil, which
// means that they were not asked for.
func (p *page) events(events []core.Event) {
	if events == nil {
		return
	}
	if len(events) == 0 {
		p.line("Events", "<none>")
		return
	}
	sort.SliceStable(events, func(i, j int) bool { return LastSeen(&events[i]).Before(LastSeen(&events[j])) })
	p.text("Events:\n  Type\tReason\tAge\tFrom\tMessage")
	p.text("  ----\t------\t----\t----\t-------")
	for i := range events {
		e := &events[i]
		message := strings.TrimSpace(e.Message)
		if part := e.InvolvedObject.FieldPath; part != "" {
			message = part + ": " + message
		}
		p.text("  %s\t%s\t%s\t%s\t%s", e.Type, e.Reason, EventAge(e, p.now), cmp.Or(e.Source.Component, e.ReportingController), message)
	}
}

// LastSeen is when an event happened last.
func LastSeen(e *core.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// EventAge is how long ago an event happened, and how often.
func EventAge(e *core.Event, now time.Time) string {
	first := cmp.Or(e.FirstTimestamp.Time, e.EventTime.Time)
	count := e.Count
	if e.Series != nil {
		count = e.Series.Count
	}
	if count > 1 {
		return fmt.Sprintf("%s (x%d over %s)", formatAge(LastSeen(e), now), count, formatAge(first, now))
	}
	return formatAge(LastSeen(e), now)
}

func formatAge(at, now time.Time) string {
	if at.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(at))
}
