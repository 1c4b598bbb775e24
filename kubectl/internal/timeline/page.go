package timeline

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

var pageTemplate = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(pageText)) })

// page is what page.html shows. The page is one file that loads nothing else:
// it has no script, and its own policy allows only its one style sheet, so that
// anything in a pod can only be shown as text.
type page struct {
	Policy string
	Style  template.CSS

	Pod         *core.Pod
	Node, Total string
	Began, Now  string
	Lost        []string
	Rough       bool // some times are of whole seconds
	Shares      []share
	Charts      []chart
	Containers  []container
	Events      []eventRow
}

// share is what one program took of the whole.
type share struct {
	Who, Time, Percent string
	X, Width           float64 // in percent of the whole

	took time.Duration
}

// chart is a waterfall with a scale of its own.
type chart struct {
	Title, Note string
	Ticks       []tick
	Legs        []chartLeg
}

type tick struct {
	X      float64
	Label  string
	Anchor string
}

type chartLeg struct {
	Leg       int
	Who, Name string
	Bars      []bar
}

type bar struct {
	Row
	Text, AtText, TookText string
	X, Width               float64 // in percent of the chart
	Beside                 bool    // the whole did not wait for it
}

type container struct {
	Name, Image, Kind, State     string
	ImageAt, CreatedAt, StartsAt string
}

type eventRow struct {
	Type, Reason, At, From, Message string
	Count                           int32
}

// About is what a page says besides the pod's way.
type About struct {
	Pod    *core.Pod
	Events []core.Event
	Gone   bool     // there is no such pod any more
	Now    string   // what the pod waits for, if it does
	Lost   []string // why moments may be missing
	End    Timeline // the pod's end, if it has begun

	Restarts []Restart // the last ones of its containers
}

// HTML writes the pod's way as a page for a browser.
func (t Timeline) HTML(w io.Writer, a About) error {
	sum := sha256.Sum256([]byte(pageStyle))
	view := page{
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'",
		Style:  template.CSS(pageStyle), //nolint:gosec // ours
		Pod:    a.Pod, Node: cmp.Or(a.Pod.Spec.NodeName, "no node yet"), Total: length(t.Total),
		Now: a.Now, Lost: a.Lost, Shares: t.shares(), Containers: t.containers(a.Pod), Events: t.happenings(a.Events),
	}
	if a.Gone {
		view.Node = "gone"
	}
	if len(t.Rows) > 0 {
		view.Began = t.Rows[0].At.UTC().Format("2006-01-02 15:04:05.000 MST")
		view.Charts = t.charts()
		view.Rough = slices.ContainsFunc(slices.Concat(t.Rows, a.End.Rows), func(r Row) bool { return r.Approximate }) ||
			slices.ContainsFunc(a.Restarts, func(r Restart) bool { return r.Approximate })
	}
	view.Charts = append(view.Charts, restartCharts(a.Restarts)...)
	if end := a.End; len(end.Rows) > 0 {
		began := "began " + end.Rows[0].At.UTC().Format("2006-01-02 15:04:05.000 MST")
		view.Charts = append(view.Charts, chart{Title: "Its end", Note: began, Ticks: ticks(end.Total), Legs: end.legs(end.Rows, end.Total)})
	}
	return pageTemplate().Execute(w, view)
}

// length formats a duration as briefly as possible.
func length(d time.Duration) string {
	if d < 10*time.Second {
		return milliseconds(d) + " ms"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// shares adds up each program's part of the total time.
func (t Timeline) shares() []share {
	var shares []share
	path := t.Path()
	for i, row := range t.Rows {
		at := slices.IndexFunc(shares, func(s share) bool { return s.Who == row.Who })
		if at < 0 {
			at = len(shares)
			shares = append(shares, share{Who: row.Who})
		}
		if path[i] {
			shares[at].took += row.Took
		}
	}
	x := 0.0
	for i := range shares {
		s := &shares[i]
		s.X, s.Width = x, percent(s.took, t.Total)
		s.Time, s.Percent = length(s.took), fmt.Sprintf("%.1f %%", s.Width)
		x += s.Width
	}
	return shares
}

func percent(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole) * 100
}

// lastControlLeg is the last leg before the pod's node takes part.
const lastControlLeg = 8

// charts are the whole way, and, if the node's part leaves little room for
// everything before, that part once more on a scale of its own.
func (t Timeline) charts() []chart {
	whole := chart{Title: "The whole way", Ticks: ticks(t.Total), Legs: t.legs(t.Rows, t.Total)}
	charts := []chart{whole}
	before := 0
	for before < len(t.Rows) && t.Rows[before].Leg > 0 && t.Rows[before].Leg <= lastControlLeg {
		before++
	}
	if before < 2 || before == len(t.Rows) {
		return charts
	}
	if total := t.Rows[before-1].Offset; total > 0 && percent(total, t.Total) < 40 {
		closer := Timeline{Rows: t.Rows[:before], Total: total}
		charts = append(charts, chart{
			Title: "Closer: until the pod has a node",
			Note:  fmt.Sprintf("the first %s of %s, %.1f %%", length(total), length(t.Total), percent(total, t.Total)),
			Ticks: ticks(total), Legs: closer.legs(t.Rows[:before], total),
		})
	}
	return charts
}

// names says what each leg of the relay is about.
var names = map[int]string{
	1: "the command is checked and sent", 2: "the request is let in", 3: "the pod is decoded and admitted",
	4: "the pod is stored", 5: "the watchers get it", 6: "a node is found", 7: "the Binding is sent",
	8: "the Binding is stored", 9: "the node takes the pod in", 10: "sandbox, image, containers", 11: "the status comes back",
}

// endNames are those of its end.
var endNames = map[int]string{
	2: "the pod is marked", 3: "the node is told", 4: "hooks, signals, grace period", 6: "the pod is removed",
}

func legName(row Row) string {
	if row.Hop.OfEnd() {
		return endNames[row.Leg]
	}
	return names[row.Leg]
}

// legs are the rows, grouped by consecutive rows of one leg.
func (t Timeline) legs(rows []Row, total time.Duration) []chartLeg {
	var legs []chartLeg
	path := t.Path()
	for i, row := range rows {
		if last := len(legs) - 1; last < 0 || legs[last].Leg != row.Leg || legs[last].Who != row.Who {
			legs = append(legs, chartLeg{Leg: row.Leg, Who: row.Who, Name: legName(row)})
		}
		b := bar{
			Row: row, Text: row.text(), AtText: row.mark(row.Offset), TookText: milliseconds(row.Took),
			X: percent(row.Offset-row.Took, total), Width: max(percent(row.Took, total), thinnest), Beside: !path[i],
		}
		b.X = min(b.X, 100-b.Width)
		last := &legs[len(legs)-1]
		last.Bars = append(last.Bars, b)
	}
	return legs
}

// thinnest is how thin a bar may be and still be seen, in percent.
const thinnest = 0.4

// ticks divide a scale by round numbers, into seven parts at most.
func ticks(total time.Duration) []tick {
	if total <= 0 {
		return nil
	}
	var all []tick
	step := tickStep(total)
	for at := time.Duration(0); at <= total && at >= 0; at += step {
		x := percent(at, total)
		all = append(all, tick{X: x, Label: tickLabel(at), Anchor: anchor(x)})
	}
	return all
}

func tickStep(total time.Duration) time.Duration {
	for step := time.Microsecond; ; step *= 10 {
		for _, by := range []time.Duration{1, 2, 5} {
			if total/(step*by) <= 7 {
				return step * by
			}
		}
	}
}

// anchor keeps a label inside the scale.
func anchor(x float64) string {
	switch {
	case x < 3:
		return "start"
	case x > 98:
		return "end"
	}
	return "middle"
}

func tickLabel(at time.Duration) string {
	switch {
	case at == 0:
		return "0"
	case at >= 10*time.Second:
		return fmt.Sprintf("%g s", at.Seconds())
	}
	return fmt.Sprintf("%g ms", float64(at)/float64(time.Millisecond))
}

// containers are the pod's, with the moments of each.
func (t Timeline) containers(pod *core.Pod) []container {
	moments := map[string]string{}
	for _, row := range t.Rows {
		moments[string(row.Hop)] = row.mark(row.Offset) + " ms"
	}
	states := map[string]string{}
	for status := range core.ContainerStatuses(&pod.Status) {
		states[status.Name] = state(status)
	}
	var all []container
	add := func(kind string, of []corev1.Container) {
		for i := range of {
			name := of[i].Name
			all = append(all, container{
				Name:      name,
				Image:     of[i].Image,
				Kind:      kind,
				State:     states[name],
				ImageAt:   moments["kubelet.image-pulled/"+name],
				CreatedAt: moments["kubelet.container-created/"+name],
				StartsAt:  moments["kubelet.container-started/"+name],
			})
		}
	}
	add("init", pod.Spec.InitContainers)
	add("", pod.Spec.Containers)
	return all
}

func state(status *corev1.ContainerStatus) string {
	text := "waiting"
	switch s := status.State; {
	case s.Running != nil && status.Ready:
		text = "running, ready"
	case s.Running != nil:
		text = "running"
	case s.Terminated != nil:
		text = strings.TrimSpace(fmt.Sprintf("ended with %d %s", s.Terminated.ExitCode, s.Terminated.Reason))
	case s.Waiting != nil && s.Waiting.Reason != "":
		text = "waiting: " + s.Waiting.Reason
	}
	if status.RestartCount > 0 {
		text += fmt.Sprintf(", %d restarts", status.RestartCount)
	}
	return text
}

// happenings are the pod's events, with times relative to the waterfall's.
func (t Timeline) happenings(events []core.Event) []eventRow {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b core.Event) int { return eventTime(&a).Compare(eventTime(&b)) })
	var all []eventRow
	for i := range events {
		e := &events[i]
		h := eventRow{
			Type:    e.Type,
			Reason:  e.Reason,
			Message: strings.TrimSpace(e.Message),
			Count:   e.Count,
			From:    cmp.Or(e.Source.Component, e.ReportingController),
		}
		if at := eventTime(e); !at.IsZero() && len(t.Rows) > 0 {
			h.At = length(max(at.Sub(t.Rows[0].At), 0))
			if at.Nanosecond() == 0 {
				h.At = "~" + h.At
			}
		}
		all = append(all, h)
	}
	return all
}
