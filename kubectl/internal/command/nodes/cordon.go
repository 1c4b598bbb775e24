package nodes

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
)

func newCordon(c *frame.CLI) *cobra.Command { return newScheduling(c, "cordon", "unschedulable", true) }

func newUncordon(c *frame.CLI) *cobra.Command {
	return newScheduling(c, "uncordon", "schedulable", false)
}

// cordonOptions are the options of cordon and uncordon.
type cordonOptions struct {
	*send.Sender
	verb          string
	unschedulable bool
}

// newScheduling marks nodes as closed or open for new pods.
func newScheduling(c *frame.CLI, verb, as string, unschedulable bool) *cobra.Command {
	s := &cordonOptions{Sender: &send.Sender{CLI: c, Manager: send.FieldManager}, verb: verb, unschedulable: unschedulable}
	var selected lookup.Selection
	cmd := &cobra.Command{
		Use: verb + " NODE...", Short: "Mark node as " + as, Example: "  kctl " + verb + " node-1",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !cmd.Flags().Changed("selector") {
				return frame.UsageError(cmd, "USAGE: %s NODE [flags]", verb)
			}
			targets, err := lookup.Targets(cmd.Context(), c, &selected, args, core.Nodes.Name)
			if err != nil {
				return err
			}
			nodes, err := fetchAll(cmd.Context(), c, targets, &selected)
			if err != nil {
				return err // all or none, as kubectl does
			}
			var failed []error
			for i := range nodes {
				failed = append(failed, s.schedule(cmd.Context(), targets[0], &nodes[i]))
			}
			return errors.Join(failed...)
		},
	}
	selected.AddLabels(cmd.Flags())
	s.DryRun.Add(cmd)
	return cmd
}

// fetchAll reads all nodes that are meant.
func fetchAll(ctx context.Context, c *frame.CLI, targets []lookup.Target,
	s *lookup.Selection) (all []unstructured.Unstructured, err error) {
	var failed []error
	for _, t := range targets {
		nodes, err := lookup.Fetch(ctx, c, t, s)
		all, failed = append(all, nodes...), append(failed, err)
	}
	return all, errors.Join(failed...)
}

// schedule closes or opens a node, and says so.
func (s *cordonOptions) schedule(ctx context.Context, t lookup.Target, node *unstructured.Unstructured) error {
	t.ObjectName = node.GetName()
	is, _, err := unstructured.NestedBool(node.Object, "spec", "unschedulable")
	if err != nil {
		return fmt.Errorf("reading node %s: %w", t.ObjectName, err)
	}
	operation := s.verb + "ed"
	if is == s.unschedulable {
		operation = "already " + operation
	} else if s.DryRun != frame.DryRunClient {
		body := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, s.unschedulable)
		if !s.unschedulable {
			body = `{"spec":{"unschedulable":null}}`
		}
		if _, err := s.Patch(ctx, t, types.StrategicMergePatchType, []byte(body)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(s.Out, "node/%s %s\n", printer.Visible(t.ObjectName), s.DryRun.Mark(operation))
	return err
}
