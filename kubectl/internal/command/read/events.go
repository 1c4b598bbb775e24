package read

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/describe"
	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// eventsOptions has the flags of `kctl events`.
type eventsOptions struct {
	*frame.CLI
	frame.Printing
	about         string
	kinds         []string
	watch         bool
	allNamespaces bool
	asked         lookup.Selection // of the flags of lists, --chunk-size alone
}

func newEvents(c *frame.CLI) *cobra.Command {
	e := &eventsOptions{CLI: c}
	cmd := &cobra.Command{
		Use: "events [--for TYPE/NAME] [--types=Warning,Normal] [--watch]", Aliases: []string{"event", "ev"}, Short: "List events", Args: frame.NoArgs,
		Example: "  kctl events\n  kctl events --for pod/web --watch",
		RunE:    func(cmd *cobra.Command, _ []string) error { return e.run(cmd.Context()) },
	}
	e.Printing.Add(cmd.Flags())
	cmd.Flags().StringVar(&e.about, "for", "", "Filter events to only those pertaining to the specified resource.")
	cmd.Flags().StringSliceVar(&e.kinds, "types", nil, "Output only events of given types.")
	cmd.Flags().BoolVarP(&e.watch, "watch", "w", false, "After listing the requested events, watch for more events.")
	cmd.Flags().BoolVarP(&e.allNamespaces, "all-namespaces", "A", false, "If present, list the requested object(s) across all namespaces.")
	e.asked.AddChunkSize(cmd.Flags())
	cmd.Flags().BoolVar(&e.NoHeaders, "no-headers", false, "When using the default output format, don't print headers.")
	return cmd
}

func (e *eventsOptions) run(ctx context.Context) error {
	for _, kind := range e.kinds {
		if !strings.EqualFold(kind, corev1.EventTypeNormal) && !strings.EqualFold(kind, corev1.EventTypeWarning) {
			return errors.New("valid --types are Normal or Warning")
		}
	}
	selector, err := e.selector(ctx)
	if err != nil {
		return err
	}
	namespace, err := e.Namespace()
	if err != nil {
		return err
	}
	if e.allNamespaces {
		namespace = ""
	}
	client, err := e.Server()
	if err != nil {
		return err
	}
	t := lookup.Target{Resource: discover.Resource{Resource: core.Events}, Namespace: namespace}
	if e.Chosen() {
		return e.printObjects(ctx, t, selector)
	}
	found, revision, err := eventsOf(ctx, t.In(client), e.asked.Chunk(), selector)
	if err != nil {
		return err
	}
	out := &printer.Columns{}
	e.addHeader(out)
	shown := 0
	for i := range found {
		shown += e.addRow(out, &found[i])
	}
	if shown == 0 && !e.watch {
		e.noneFound(namespace)
		return nil
	}
	if err := out.Flush(e.Out); err != nil || !e.watch {
		return err
	}
	show := func(change rest.Event) error {
		event := core.Event{}
		if err := json.Unmarshal(change.Object, &event); err != nil {
			return fmt.Errorf("decode event: %w", err)
		}
		if change.Type != "DELETED" {
			e.addRow(out, &event)
		}
		return out.Flush(e.Out)
	}
	return lookup.Patiently(ctx, e.CLI, func(ctx context.Context) error {
		return lookup.Changes(ctx, e.CLI, lookup.Watch{Target: t, Version: revision, Options: []rest.Option{selector}}, show)
	})
}

// eventsOf are the events that are there at a revision, those seen last at the
// end.
func eventsOf(ctx context.Context, in rest.Resource, size int64, selector rest.Option) (found []core.Event, revision string, err error) {
	err = lookup.Chunks(ctx, in, size, []rest.Option{selector}, func(answer []byte) (string, error) {
		var list struct {
			Metadata metav1.ListMeta `json:"metadata"`
			Items    []core.Event    `json:"items"`
		}
		if err := json.Unmarshal(answer, &list); err != nil {
			return "", fmt.Errorf("decode answer: %w", err)
		}
		found, revision = append(found, list.Items...), list.Metadata.ResourceVersion
		return list.Metadata.Continue, nil
	})
	if err != nil {
		return nil, "", err
	}
	sort.SliceStable(found, func(i, j int) bool {
		return describe.LastSeen(&found[i]).Before(describe.LastSeen(&found[j]))
	})
	return found, revision, nil
}

func (e *eventsOptions) noneFound(namespace string) {
	if namespace == "" {
		fmt.Fprintln(e.Err, "No events found.")
	} else {
		fmt.Fprintf(e.Err, "No events found in %s namespace.\n", namespace)
	}
}

func (e *eventsOptions) printObjects(ctx context.Context, t lookup.Target, selector rest.Option) error {
	if e.watch {
		return errors.New("--watch with -o is not supported yet for events: use \"kctl get events -w -o …\"")
	}
	client, err := e.Server()
	if err != nil {
		return err
	}
	found, err := lookup.List(ctx, t.In(client), e.asked.Chunk(), selector)
	if err != nil {
		return err
	}
	if len(found.Items) == 0 {
		e.noneFound(t.Namespace)
		return nil
	}
	return e.Print(&e.Printing, "", found)
}

func (e *eventsOptions) selector(ctx context.Context) (rest.Option, error) {
	if e.about == "" {
		return rest.FieldSelector(""), nil
	}
	kind, name, ok := strings.Cut(e.about, "/")
	if !ok || name == "" {
		return nil, errors.New("--for must be in resource/name form")
	}
	discovery, err := e.Discovery()
	if err != nil {
		return nil, err
	}
	resource, err := discovery.Named(ctx, kind)
	if err != nil {
		return nil, err
	}
	return rest.FieldSelector("involvedObject.kind=" + resource.Kind + ",involvedObject.apiVersion=" + resource.GroupVersion() + ",involvedObject.name=" + name), nil
}

func (e *eventsOptions) addHeader(out *printer.Columns) {
	if e.NoHeaders {
		return
	}
	headers := []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}
	if e.allNamespaces {
		headers = append([]string{"NAMESPACE"}, headers...)
	}
	out.Add(headers...)
}

// addRow adds and counts an event, if its type is asked for.
func (e *eventsOptions) addRow(out *printer.Columns, event *core.Event) int {
	wanted := len(e.kinds) == 0
	for _, kind := range e.kinds {
		wanted = wanted || strings.EqualFold(kind, event.Type)
	}
	if !wanted {
		return 0
	}
	row := []string{
		describe.EventAge(event, e.Clock.Now()), event.Type, event.Reason,
		event.InvolvedObject.Kind + "/" + event.InvolvedObject.Name, strings.TrimSpace(event.Message),
	}
	if e.allNamespaces {
		row = append([]string{event.Namespace}, row...)
	}
	out.Add(row...)
	return 1
}
