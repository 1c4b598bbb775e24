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
	"kctl/proto/core"
)

func newCordon(c *frame.CLI) *cobra.Command { return newScheduling(c, "cordon", "unschedulable", true) }

func newUncordon(c *frame.CLI) *cobra.Command {
	return newScheduling(c, "uncordon", "schedulable", false)
}

// newScheduling marks nodes as closed or open for new pods.
func newScheduling(c *frame.CLI, verb, as string, unschedulable bool) *cobra.Command {
	s := &send.Sender{CLI: c, Manager: send.FieldManager}
	var selected lookup.Selection
	cmd := &cobra.Command{
		Use: verb + " NODE...", Short: "Mark node as " + as, Example: "  kctl " + verb + " node-1",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && selected.Labels == "" {
				return frame.UsageError(cmd, "NODE is required, or a selector with -l")
			}
			targets, err := lookup.Targets(cmd.Context(), c, &selected, args, core.Nodes.Name)
			if err != nil {
				return err
			}
			var failed []error
			for _, t := range targets {
				nodes, err := lookup.Fetch(cmd.Context(), c, t, &selected)
				failed = append(failed, err)
				for i := range nodes {
					failed = append(failed, schedule(cmd.Context(), s, t, &nodes[i], verb, unschedulable))
				}
			}
			return errors.Join(failed...)
		},
	}
	selected.AddLabels(cmd.Flags())
	s.DryRun.Add(cmd)
	return cmd
}

func schedule(ctx context.Context, s *send.Sender, t lookup.Target, node *unstructured.Unstructured, verb string, unschedulable bool) error {
	t.ObjectName = node.GetName()
	is, _, err := unstructured.NestedBool(node.Object, "spec", "unschedulable")
	if err != nil {
		return fmt.Errorf("reading node %s: %w", t.ObjectName, err)
	}
	operation := verb + "ed"
	if is == unschedulable {
		operation = "already " + operation
	} else if s.DryRun != frame.DryRunClient {
		body := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, unschedulable)
		if !unschedulable {
			body = `{"spec":{"unschedulable":null}}`
		}
		if _, err := s.Patch(ctx, t, types.StrategicMergePatchType, []byte(body)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(s.Out, "node/%s %s\n", t.ObjectName, s.DryRun.Mark(operation))
	return err
}
