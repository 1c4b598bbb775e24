package pods

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/doctor"
	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/progress"
	"kctl/kubectl/internal/timeline"
	"kctl/proto/core"
	"kctl/proto/relay"
)

// traceOptions has the flags of one `kctl trace`.
type traceOptions struct {
	*frame.CLI
	format        string
	follow        bool
	withoutEvents bool // the user was told that they may not see events
}

func newTrace(c *frame.CLI) *cobra.Command {
	t := &traceOptions{CLI: c}
	cmd := &cobra.Command{
		Use:   "trace pod/NAME",
		Short: "Show a pod's way through the programs, leg by leg, with times",
		Long: "Show a pod's way through the programs, leg by leg, with times.\n\n" +
			"The times were recorded by the programs as they worked. For programs that record none (upstream's), they are\n" +
			"taken from the pod's conditions and events; these are marked ~, because they are precise to the second only.\n" +
			"TOOK counts from the last of the moments that had to come before. What runs side by side, as volumes, image and\n" +
			"sandbox do, overlaps.\n\n" +
			"Of containers that were restarted, the last restarts are shown below: what ended them, and when they ran again.\n\n" +
			"A pod that ended has a second table, from its deletion until it was gone. The API servers remember it for a\n" +
			"while, so trace also shows a pod that is gone.",
		Example: "  kctl trace pod/web\n  kctl trace web -o json\n  kctl trace pod/web -o html > web.html\n  kctl trace pod/web --follow",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := onePod(cmd, args)
			if err != nil {
				return err
			}
			if t.format != "" && t.format != "json" && t.format != "html" {
				return frame.UsageError(cmd, "--output must be json or html, not %q", t.format)
			}
			if t.follow && t.format != "" {
				return frame.UsageError(cmd, "--follow prints lines: not with -o")
			}
			return t.run(cmd.Context(), name)
		},
	}
	cmd.Flags().StringVarP(&t.format, "output", "o", "",
		"Output format. One of: (json, html). html is a self-contained page: it needs no server, network or script.")
	cmd.Flags().BoolVarP(&t.follow, "follow", "f", false, "Print each leg as it completes, until the pod is ready or has ended.")
	return cmd
}

// defaultBars is the width of the bars if the terminal's is unknown.
const defaultBars = 40

func (t *traceOptions) run(ctx context.Context, name string) error {
	if t.follow {
		if err := t.followRows(ctx, name); err != nil {
			return err
		}
	}
	seen, err := t.fetchState(ctx, name)
	if err != nil {
		return err
	}
	switch t.format {
	case "json":
		return t.printJSON(seen)
	case "html":
		return seen.line.HTML(t.Out, timeline.About{
			Pod:      seen.pod,
			Events:   seen.events,
			Now:      t.nowOf(seen),
			Gone:     seen.gone,
			Lost:     seen.lost,
			End:      seen.end,
			Restarts: seen.again,
		})
	}
	return t.printWaterfall(seen)
}

// traceState is what is known about a pod's way at one moment.
type traceState struct {
	pod     *core.Pod
	gone    bool // there is no such pod any more: only what the servers remember is known
	events  []core.Event
	line    timeline.Timeline
	end     timeline.Timeline
	again   []timeline.Restart // the last restarts of its containers
	servers []relay.Server     // that were asked for their stamps
	lost    []string           // why some may be missing
}

// fetchState asks for the stamps and for what the API says, and joins them.
func (t *traceOptions) fetchState(ctx context.Context, name string) (*traceState, error) {
	namespace, err := t.Namespace()
	if err != nil {
		return nil, err
	}
	client, err := t.Server()
	if err != nil {
		return nil, err
	}
	pod, absent := lookup.GetPod(ctx, client, namespace, name)
	if absent != nil && !apierrors.IsNotFound(absent) {
		return nil, absent
	}
	trace := relay.Trace{}
	err = client.Do(ctx, http.MethodGet, relay.Path(namespace, name), nil, &trace)
	// Upstream's servers have no such path, and forbid it to most users; ours has it for whoever
	// may get the pod, and forgets in time, and on restart.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("asking for the stamps of pod %s: %w", name, err)
	}
	if absent != nil {
		if trace.UID == "" || !slices.ContainsFunc(trace.Stamps, func(s relay.Stamp) bool { return s.Hop == relay.ServerRemoved }) {
			return nil, absent
		}
		pod = &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(trace.UID)}}
	}
	pod.Kind = core.Pods.Kind
	var stamps []timeline.Moment
	var restarts []relay.Restart
	if err == nil && trace.UID == string(pod.UID) {
		stamps, restarts = timeline.FromTrace(trace), trace.Restarts
	}
	about := &unstructured.Unstructured{}
	about.SetKind(core.Pods.Kind)
	about.SetName(pod.Name)
	about.SetNamespace(pod.Namespace)
	about.SetUID(pod.UID)
	events, err := lookup.EventsAbout(ctx, t.CLI, about)
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return nil, err
	}
	t.tellWithoutEvents(err)
	api := timeline.FromAPI(pod, events)
	return &traceState{
		pod: pod, gone: absent != nil, events: events, line: timeline.Merge(stamps, api), end: timeline.MergeEnd(stamps, api),
		again: timeline.Restarts(restarts, pod), servers: trace.Servers, lost: lostStamps(pod, trace),
	}, nil
}

// tellWithoutEvents tells the user once that they may not see events: without these the reason
// of what holds the pod up may be missing.
func (t *traceOptions) tellWithoutEvents(err error) {
	if !apierrors.IsForbidden(err) || t.withoutEvents {
		return
	}
	t.withoutEvents = true
	t.Warn("events can't be shown: %v", err)
}

func (t *traceOptions) printWaterfall(seen *traceState) error {
	pod := seen.pod
	where := "not on a node yet, " + string(pod.Status.Phase)
	switch {
	case seen.gone:
		where = "gone"
	case pod.Spec.NodeName != "":
		where = "on " + pod.Spec.NodeName + ", " + string(pod.Status.Phase)
	}
	out := printer.VisibleTo(t.Out)
	fmt.Fprintf(out, "pod/%s in %s, %s: %s\n\n", pod.Name, pod.Namespace, where, extent(seen.line))
	if err := t.printRows(seen.line); err != nil {
		return err
	}
	t.printRestarts(seen)
	if len(seen.end.Rows) > 0 {
		fmt.Fprintf(out, "\nIts end: %s\n\n", extent(seen.end))
		if err := t.printRows(seen.end); err != nil {
			return err
		}
	}
	for i, why := range seen.lost {
		if i == 0 {
			fmt.Fprintln(t.Out)
		}
		fmt.Fprintln(t.Out, printer.Visible(why))
	}
	if now := t.nowOf(seen); now != "" {
		_, err := fmt.Fprintf(t.Out, "\nNow: %s\n", printer.Visible(now+t.next(pod)))
		return err
	}
	return nil
}

// extent says how much is known, and how long it took.
func extent(line timeline.Timeline) string {
	return fmt.Sprintf("%d moments in %.1f ms", len(line.Rows), float64(line.Total)/float64(time.Millisecond))
}

func (t *traceOptions) printRows(line timeline.Timeline) error {
	if width, ok := frame.Terminal(t.Out); ok {
		return line.PrintIn(t.Out, width)
	}
	return line.Print(t.Out, defaultBars)
}

func (t *traceOptions) nowOf(seen *traceState) string {
	if seen.gone {
		return ""
	}
	return t.now(seen.pod, seen.events)
}

// now says what the pod waits for, if it does.
func (t *traceOptions) now(pod *core.Pod, events []core.Event) string {
	view := progress.Look(pod, events)
	if view.Ended && !view.Failed && pod.DeletionTimestamp == nil {
		return ""
	}
	text := view.Now()
	switch {
	case pod.DeletionTimestamp != nil:
		text = progress.Deletion(pod)
	case doctor.NoScheduler(pod, t.Clock.Now()):
		text += fmt.Sprintf(": %s has not looked at it yet (\"kctl doctor\" tells whether it runs)",
			cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName))
	case doctor.NoKubelet(pod, t.Clock.Now()):
		text = "starting: " + noKubelet(pod)
	}
	return text
}

func noKubelet(pod *core.Pod) string {
	return fmt.Sprintf("the kubelet of node %[1]s has not taken it up yet (\"kctl get node %[1]s\" tells whether there is such a "+
		"node, and whether it is ready)", pod.Spec.NodeName)
}

// problem is what holds a pod up, for programs.
func (t *traceOptions) problem(pod *core.Pod, events []core.Event) string {
	switch {
	case pod.DeletionTimestamp != nil:
		return progress.Deletion(pod)
	case doctor.NoKubelet(pod, t.Clock.Now()):
		return noKubelet(pod)
	}
	return progress.Look(pod, events).Problem
}

// next is the command that tells more about what a pod waits for, as a line of its own.
func (t *traceOptions) next(pod *core.Pod) string {
	gated := len(pod.Spec.SchedulingGates) > 0
	switch at := t.sameNamespace(pod); {
	case pod.DeletionTimestamp != nil:
	case gated:
		var gates []string
		for _, gate := range pod.Spec.SchedulingGates {
			gates = append(gates, gate.Name)
		}
		return "\n(it waits until its scheduling gates are removed by whoever has set them: " + strings.Join(gates, ", ") + ")"
	case pod.Spec.NodeName == "":
		return fmt.Sprintf("\n(\"kctl explain-schedule pod/%s%s\" tells what each node answers)", pod.Name, at)
	default:
		for status := range core.ContainerStatuses(&pod.Status) {
			if status.State.Waiting != nil && status.LastTerminationState.Terminated != nil {
				return fmt.Sprintf("\n(\"kctl logs %s%s -c %s --previous\" prints what it has said)", pod.Name, at, status.Name)
			}
		}
	}
	return ""
}

// sameNamespace is the flag with which another command finds the pod.
func (t *traceOptions) sameNamespace(pod *core.Pod) string {
	if target, err := t.Kubeconfig(); err == nil && target.Chosen {
		return " -n " + pod.Namespace
	}
	return ""
}

// followEvery is how often the stamps are asked for while they come in.
const followEvery = 200 * time.Millisecond

// followRows prints rows as they become known, until the pod is ready or has
// ended.
func (t *traceOptions) followRows(ctx context.Context, name string) error {
	if err := timeline.PrintHead(t.Out); err != nil {
		return err
	}
	printed := map[relay.Hop]bool{}
	tick := t.Clock.NewTicker(followEvery)
	defer tick.Stop()
	for {
		seen, err := t.fetchState(ctx, name)
		if err != nil {
			return err
		}
		ended := hasSettled(seen.pod) || seen.gone
		for _, row := range seen.line.Rows {
			if printed[row.Hop] {
				continue
			}
			printed[row.Hop] = true
			if err := timeline.PrintRow(t.Out, row); err != nil {
				return err
			}
		}
		if ended {
			_, err := fmt.Fprintln(t.Out)
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C():
		}
	}
}

func hasSettled(pod *core.Pod) bool { return core.Ended(pod.Status.Phase) || core.PodReady(pod) }
