package pods

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/timeline"
	"kctl/proto/core"
	"kctl/proto/relay"
)

// lostStamps says which API servers may have had stamps of the pod that are not shown: those that
// did not answer, and, if any that they make is missing, those that were started later.
func lostStamps(pod *core.Pod, trace relay.Trace) []string {
	var why []string
	created, known := whenCreated(pod, trace)
	for _, server := range trace.Servers {
		switch {
		case server.Silent:
			why = append(why, fmt.Sprintf("The API server %s did not answer: its stamps are not among these.", server.Name))
		case known && !server.Started.Before(created) && !hasServersStamps(pod, trace):
			why = append(why,
				fmt.Sprintf("The API server %s was started at %s, after the pod was created: stamps that were kept there before are lost.",
					server.Name, server.Started.UTC().Format(time.RFC3339)))
		}
	}
	return why
}

// whenCreated is when the pod was created, or, if that is known to the second only, the end of that
// second: who was started within it is not said to have come later.
func whenCreated(pod *core.Pod, trace relay.Trace) (at time.Time, known bool) {
	if trace.UID == string(pod.UID) {
		for _, s := range trace.Stamps {
			if s.Hop == relay.ServerStored {
				return s.At, true
			}
		}
	}
	return pod.CreationTimestamp.Add(time.Second), !pod.CreationTimestamp.IsZero()
}

// hasServersStamps reports whether the stamps are there that API servers make for each pod: one for
// the create and, unless its kubelet or somebody else has made it on its node, one for the Binding.
func hasServersStamps(pod *core.Pod, trace relay.Trace) bool {
	bound := pod.Spec.NodeName == "" || core.IsMirror(pod)
	stored := false
	for _, s := range trace.Stamps {
		stored = stored || s.Hop == relay.ServerStored
		bound = bound || s.Hop == relay.ServerBound
	}
	return stored && bound && trace.UID == string(pod.UID)
}

// traceOutput is what -o json prints.
type traceOutput struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Node      string `json:"node,omitempty"`
	Phase     string `json:"phase"`
	Problem   string `json:"problem,omitempty"` // why it gets no further
	timesOutput

	Restarts []restartJ `json:"restarts,omitempty"` // the last ones of its containers

	Gone bool         `json:"gone,omitempty"` // there is no such pod any more
	End  *timesOutput `json:"end,omitempty"`  // the pod's end, if it has begun

	Servers []relay.Server `json:"servers,omitempty"` // that were asked for their stamps
	Lost    []string       `json:"lost,omitempty"`    // why some may be missing
}

// timesOutput is a way with its times.
type timesOutput struct {
	TotalMilliseconds float64   `json:"totalMilliseconds"`
	Moments           []momentJ `json:"moments"`
}

func timesOf(line timeline.Timeline) timesOutput {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	out := timesOutput{TotalMilliseconds: ms(line.Total), Moments: []momentJ{}}
	for _, row := range line.Rows {
		out.Moments = append(out.Moments, momentJ{row, ms(row.Offset), ms(row.Took)})
	}
	return out
}

// restartJ is a restart of a container, with its times as fields and as moments.
type restartJ struct {
	relay.Restart
	Because     string `json:"because"` // in words
	Approximate bool   `json:"approximate,omitempty"`
	timesOutput
}

func restartsOf(restarts []timeline.Restart) (out []restartJ) {
	for _, r := range restarts {
		out = append(out, restartJ{r.Restart, r.Because(), r.Approximate, timesOf(r.Way)})
	}
	return out
}

// printRestarts says what is known of restarts, of each in two lines: what ended the container, and
// what came after.
func (t *traceOptions) printRestarts(seen *traceState) {
	if len(seen.again) == 0 {
		return
	}
	var counts []string
	for status := range core.ContainerStatuses(&seen.pod.Status) {
		if status.RestartCount > 0 {
			counts = append(counts, fmt.Sprintf("%s %d", status.Name, status.RestartCount))
		}
	}
	head := "Its restarts"
	if len(counts) > 0 {
		head += " (" + strings.Join(counts, ", ") + ")"
	}
	out := printer.VisibleTo(t.Out)
	fmt.Fprintf(out, "\n%s; the last that are known:\n\n", head)
	for _, r := range seen.again {
		fmt.Fprintf(out, "%s, %s\n    %s\n    %s\n", r.Title(), r.When(), r.Because(), r.Next())
	}
}

type momentJ struct {
	timeline.Row
	OffsetMilliseconds float64 `json:"offsetMilliseconds"`
	TookMilliseconds   float64 `json:"tookMilliseconds"`
}

func (t *traceOptions) printJSON(seen *traceState) error {
	pod := seen.pod
	out := traceOutput{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName, Phase: string(pod.Status.Phase),
		timesOutput: timesOf(seen.line), Restarts: restartsOf(seen.again), Gone: seen.gone, Servers: seen.servers, Lost: seen.lost,
	}
	if !seen.gone {
		out.Problem = t.problem(pod, seen.events)
	}
	if len(seen.end.Rows) > 0 {
		end := timesOf(seen.end)
		out.End = &end
	}
	encoder := json.NewEncoder(t.Out)
	encoder.SetIndent("", "    ")
	return encoder.Encode(out)
}
