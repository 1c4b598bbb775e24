package read

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/describe"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// describeOptions has the flags of one `kctl describe`.
type describeOptions struct {
	*frame.CLI
	lookup.Selection
	showEvents bool
}

func newDescribe(c *frame.CLI) *cobra.Command {
	d := &describeOptions{CLI: c}
	cmd := &cobra.Command{
		Use:        "describe (TYPE [NAME... | -l SELECTOR] | TYPE/NAME | -f FILE)",
		Short:      "Show details of a specific resource or group of resources",
		Example:    "  kctl describe pod web\n  kctl describe nodes",
		SuggestFor: []string{"inspect"},
		RunE:       func(cmd *cobra.Command, args []string) error { return d.run(cmd, args) },
	}
	d.AddFiles(cmd.Flags(), "containing the resource to describe")
	d.AddLabels(cmd.Flags())
	d.AddAllNamespaces(cmd.Flags())
	cmd.Flags().BoolVar(&d.showEvents, "show-events", true,
		"If true, display events related to the described object. Defaults to true for a single object, false for multiple objects.")
	d.AddChunkSize(cmd.Flags())
	return cmd
}

func (d *describeOptions) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 && !d.FromFiles() {
		//nolint:staticcheck // kubectl's words
		return fmt.Errorf(`You must specify the type of resource to describe. Use "%s api-resources" for a complete list of supported resources.`,
			d.CLI.Name)
	}
	targets, err := lookup.Targets(cmd.Context(), d.CLI, &d.Selection, args, "")
	if err != nil && len(targets) == 0 {
		return err
	}
	failed := []error{err}
	var all []unstructured.Unstructured
	prefix := false
	for _, t := range targets {
		found, err := lookup.Fetch(cmd.Context(), d.CLI, t, &d.Selection)
		if apierrors.IsNotFound(err) && len(args) == 2 && len(targets) == 1 {
			if begun := d.findByPrefix(cmd.Context(), t); len(begun) > 0 {
				found, err, prefix = begun, nil, true
			}
		}
		if err != nil {
			failed = append(failed, err)
		}
		all = append(all, found...)
	}
	if !cmd.Flags().Changed("show-events") {
		d.showEvents = len(all) == 1 && !prefix
	}
	for i := range all {
		if i > 0 && !prefix {
			fmt.Fprint(d.Out, "\n\n")
		}
		failed = append(failed, d.describe(cmd.Context(), &all[i]))
		if prefix {
			fmt.Fprintln(d.Out)
		}
	}
	if len(all) == 0 && errors.Join(failed...) == nil {
		return (&getOptions{CLI: d.CLI}).noneFound(targets)
	}
	return errors.Join(failed...)
}

// findByPrefix finds the objects whose names begin with the target's.
func (d *describeOptions) findByPrefix(ctx context.Context, t lookup.Target) []unstructured.Unstructured {
	prefix := t.ObjectName
	t.ObjectName = ""
	found, err := lookup.Fetch(ctx, d.CLI, t, &d.Selection)
	if err != nil {
		return nil // "not found" for the name says more
	}
	return slices.DeleteFunc(found, func(object unstructured.Unstructured) bool { return !strings.HasPrefix(object.GetName(), prefix) })
}

func (d *describeOptions) describe(ctx context.Context, object *unstructured.Unstructured) error {
	now := d.Clock.Now()
	switch object.GetAPIVersion() + "/" + object.GetKind() {
	case "v1/Pod":
		pod := &core.Pod{}
		if err := lookup.Typed(object, pod); err != nil {
			return err
		}
		return describe.Pod(d.Out, pod, d.events(ctx, object), now)
	case "v1/Node":
		return d.node(ctx, object)
	case "v1/Namespace":
		namespace := &core.Namespace{}
		if err := lookup.Typed(object, namespace); err != nil {
			return err
		}
		return describe.Namespace(d.Out, namespace, d.fetchRelated(ctx, object), now)
	case "v1/Secret":
		secret := &core.Secret{}
		if err := lookup.Typed(object, secret); err != nil {
			return err
		}
		return describe.Secret(d.Out, secret, now)
	}
	events := d.events(ctx, object)
	if known, err := describe.Known(d.Out, object, d.fetchRelated(ctx, object), events, now); known {
		return err
	}
	return describe.Generic(d.Out, object, events, now)
}

func (d *describeOptions) node(ctx context.Context, object *unstructured.Unstructured) error {
	node := &core.Node{}
	if err := lookup.Typed(object, node); err != nil {
		return err
	}
	client, err := d.Server()
	if err != nil {
		return err
	}
	lease := &core.Lease{}
	if err := client.Resource(core.Leases, core.NamespaceNodeLease).Get(ctx, node.Name, lease); err != nil {
		if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return err
		}
		lease = nil // nodes need not have one, and users need not see it
	}
	pods, err := lookup.TypedList[core.Pod](ctx, client.Resource(core.Pods, ""), lookup.ChunkSize,
		rest.FieldSelector("spec.nodeName="+node.Name))
	if err != nil {
		return err
	}
	// A node's events carry its name as uid.
	return describe.Node(d.Out, describe.NodeFacts{Node: node, Lease: lease, Pods: pods, Events: d.events(ctx, object)}, d.Clock.Now())
}

// events are those about the object. If the user may not see them, or the
// server has none, the rest is shown without them.
func (d *describeOptions) events(ctx context.Context, object *unstructured.Unstructured) []core.Event {
	if !d.showEvents {
		return nil
	}
	found, err := lookup.EventsAbout(ctx, d.CLI, object)
	if err != nil {
		d.Warn("events could not be listed: %v", err)
	}
	return append([]core.Event{}, found...) // not nil: they were asked for
}
