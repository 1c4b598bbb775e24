package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

func newCordon(c *cli) *cobra.Command   { return newScheduling(c, "cordon", "unschedulable", true) }
func newUncordon(c *cli) *cobra.Command { return newScheduling(c, "uncordon", "schedulable", false) }

// newScheduling marks nodes as closed or open for new pods.
func newScheduling(c *cli, verb, as string, unschedulable bool) *cobra.Command {
	s := &sending{cli: c, manager: fieldManager}
	var selected selection
	cmd := &cobra.Command{
		Use: verb + " NODE...", Short: "Mark node as " + as, Example: "  kctl " + verb + " node-1",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && selected.labels == "" {
				return usageError(cmd, "NODE is required, or a selector with -l")
			}
			targets, err := c.targets(cmd.Context(), &selected, args, core.Nodes.Name)
			if err != nil {
				return err
			}
			var failed []error
			for _, t := range targets {
				nodes, err := c.fetch(cmd.Context(), t, &selected)
				failed = append(failed, err)
				for i := range nodes {
					failed = append(failed, s.schedule(cmd.Context(), t, &nodes[i], verb, unschedulable))
				}
			}
			return errors.Join(failed...)
		},
	}
	selected.addLabels(cmd.Flags())
	s.dryRun.add(cmd)
	return cmd
}

func (s *sending) schedule(ctx context.Context, t target, node *unstructured.Unstructured, verb string, unschedulable bool) error {
	t.name = node.GetName()
	is, _, err := unstructured.NestedBool(node.Object, "spec", "unschedulable")
	if err != nil {
		return fmt.Errorf("reading node %s: %w", t.name, err)
	}
	operation := verb + "ed"
	if is == unschedulable {
		operation = "already " + operation
	} else if s.dryRun != dryRunClient {
		body := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, unschedulable)
		if !unschedulable {
			body = `{"spec":{"unschedulable":null}}`
		}
		if _, err := s.sendPatch(ctx, t, types.StrategicMergePatchType, []byte(body)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(s.Out, "node/%s %s\n", t.name, s.dryRun.mark(operation))
	return err
}
