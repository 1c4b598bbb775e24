package read

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

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
		Use: "events [--for TYPE/NAME] [--types=Warning,Normal] [--watch]", Aliases: []string{"event", "ev"}, Short: "List events",
		Args:    frame.NoArgs,
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
	found, revision, err := eventsOf(ctx, t.In(client), e.asked.Chunk(), selector)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(event core.Event) bool { return !e.wanted(&event) })
	if len(found) == 0 && !e.watch {
		e.noneFound(namespace)
		return nil
	}
	show, err := e.showAll(found)
	if err != nil || !e.watch {
		return err
	}
	return e.follow(ctx, lookup.Watch{Target: t, Version: revision, Options: []rest.Option{selector}}, show)
}

// follow shows the wanted events as they come.
func (e *eventsOptions) follow(ctx context.Context, from lookup.Watch, show func(*core.Event) error) error {
	return lookup.Patiently(ctx, e.CLI, func(ctx context.Context) error {
		return lookup.Changes(ctx, e.CLI, from, func(change rest.Event) error {
			event := core.Event{}
			if err := json.Unmarshal(change.Object, &event); err != nil {
				return fmt.Errorf("decode event: %w", err)
			}
			if change.Type == "DELETED" || !e.wanted(&event) {
				return nil
			}
			return show(&event)
		})
	})
}

// showAll shows the events that are there, and returns what shows one more.
func (e *eventsOptions) showAll(found []core.Event) (show func(*core.Event) error, err error) {
	if !e.Chosen() {
		out := &printer.Columns{}
		e.addHeader(out)
		for i := range found {
			e.addRow(out, &found[i])
		}
		return func(event *core.Event) error {
			e.addRow(out, event)
			return out.Flush(e.Out)
		}, out.Flush(e.Out)
	}
	show = func(event *core.Event) error {
		event.SetGroupVersionKind(core.Events.GVK())
		return e.Print(&e.Printing, "", event)
	}
	if !e.watch {
		list, err := listOf(found)
		if err != nil {
			return nil, err
		}
		return show, e.Print(&e.Printing, "", list)
	}
	for i := range found {
		err = errors.Join(err, show(&found[i]))
	}
	return show, err
}

// listOf is the list of events as the server would have answered with it.
func listOf(found []core.Event) (*unstructured.UnstructuredList, error) {
	list := &corev1.EventList{Items: found}
	list.SetGroupVersionKind(core.Events.GVK().GroupVersion().WithKind(core.Events.Kind + "List"))
	encoded, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encode events: %w", err)
	}
	return lookup.DecodeList(encoded)
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
	slices.SortStableFunc(found, func(a, b core.Event) int { return describe.LastSeen(&a).Compare(describe.LastSeen(&b)) })
	return found, revision, nil
}

func (e *eventsOptions) noneFound(namespace string) {
	if namespace == "" {
		fmt.Fprintln(e.Err, "No events found.")
	} else {
		fmt.Fprintf(e.Err, "No events found in %s namespace.\n", namespace)
	}
}

func (e *eventsOptions) selector(ctx context.Context) (rest.Option, error) {
	if e.about == "" {
		return rest.FieldSelector(""), nil
	}
	kind, name, ok := strings.Cut(e.about, "/")
	switch {
	case !ok, name == "":
		return nil, errors.New("--for must be in resource/name form")
	case strings.Contains(name, "/"):
		return nil, errors.New("arguments in resource/name form may not have more than one slash")
	}
	discovery, err := e.Discovery()
	if err != nil {
		return nil, err
	}
	resource, err := discovery.Named(ctx, kind)
	if err != nil {
		return nil, err
	}
	return rest.FieldSelector("involvedObject.kind=" + resource.Kind + ",involvedObject.apiVersion=" + resource.GroupVersion() +
		",involvedObject.name=" + fields.EscapeValue(name)), nil
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

// wanted tells whether an event is of a type that is asked for.
func (e *eventsOptions) wanted(event *core.Event) bool {
	return len(e.kinds) == 0 || slices.ContainsFunc(e.kinds, func(kind string) bool { return strings.EqualFold(kind, event.Type) })
}

func (e *eventsOptions) addRow(out *printer.Columns, event *core.Event) {
	row := []string{
		describe.EventAge(event, e.Clock.Now()), event.Type, event.Reason,
		event.InvolvedObject.Kind + "/" + event.InvolvedObject.Name, strings.TrimSpace(event.Message),
	}
	if e.allNamespaces {
		row = append([]string{event.Namespace}, row...)
	}
	out.Add(row...)
}
