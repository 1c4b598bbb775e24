package change

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/threeway"
)

func newViewLastApplied(c *frame.CLI) *cobra.Command {
	var selected lookup.Selection
	var format string
	cmd := &cobra.Command{
		Use:   "view-last-applied (TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME)",
		Short: "View the latest last-applied-configuration annotations of a resource/object",
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "yaml" && format != "json" {
				return frame.UsageError(cmd, "Unexpected -o output mode: %s, the flag 'output' must be one of yaml|json", format)
			}
			targets, err := lookup.Named(cmd.Context(), c, &selected, args, "")
			if err != nil {
				return err
			}
			return lookup.Each(cmd.Context(), c, targets, &selected, func(t lookup.Target, object *unstructured.Unstructured) error {
				text, ok := object.GetAnnotations()[threeway.LastApplied]
				if !ok && selected.All {
					return nil
				}
				if !ok {
					return fmt.Errorf("no last-applied-configuration annotation found on resource: %s", t.ObjectName)
				}
				return printApplied(c, text, format)
			})
		},
	}
	selected.AddFiles(cmd.Flags(), "that contains the last-applied-configuration annotations")
	selected.AddLabels(cmd.Flags())
	selected.AllSelects = true
	cmd.Flags().BoolVar(&selected.All, "all", false, "Select all resources in the namespace of the specified resource types")
	cmd.Flags().StringVarP(&format, "output", "o", "yaml", "Output format. Must be one of (yaml, json)")
	return cmd
}

func printApplied(c *frame.CLI, text, format string) error {
	var content any
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		return fmt.Errorf("decode the last-applied-configuration annotation: %w", err)
	}
	var out []byte
	var err error
	if format == "json" {
		if out, err = json.MarshalIndent(content, "", "  "); err == nil {
			out = append(out, '\n')
		}
	} else {
		out, err = yaml.Marshal(content)
	}
	if err != nil {
		return fmt.Errorf("encoding the configuration: %w", err)
	}
	_, err = c.Out.Write(out)
	return err
}

func newSetLastApplied(c *frame.CLI) *cobra.Command {
	s := &send.Sender{CLI: c}
	var selected lookup.Selection
	var create bool
	cmd := &cobra.Command{
		Use:   "set-last-applied -f FILENAME",
		Short: "Set the last-applied-configuration annotation on a live object to match the contents of a file",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 || len(selected.Files) == 0 {
				return frame.UsageError(cmd, "must specify -f, and nothing else")
			}
			targets, err := lookup.Targets(cmd.Context(), c, &selected, nil, "")
			if err != nil {
				return err
			}
			var changes []lastAppliedChange
			for _, t := range targets { // as kubectl: none is changed if one can't be
				change, err := lastAppliedOf(cmd.Context(), c, t, create)
				if err != nil {
					return err
				}
				if change.object == nil {
					if _, err := fmt.Fprintf(s.Out, "set-last-applied %s: no changes required.\n", t.ObjectName); err != nil {
						return err
					}
					continue
				}
				changes = append(changes, change)
			}
			for _, change := range changes {
				if err := change.send(cmd.Context(), s); err != nil {
					return err
				}
			}
			return nil
		},
	}
	selected.AddFilenames(cmd.Flags(), "that contains the last-applied-configuration annotations")
	s.Printing.AddChecked(cmd)
	s.DryRun.Add(cmd)
	s.Manager = send.FieldManager
	cmd.Flags().BoolVar(&create, "create-annotation", false,
		"Will create 'last-applied-configuration' annotations if current objects doesn't have one")
	return cmd
}

// lastAppliedChange is what is to be recorded with an object as it is on the server.
type lastAppliedChange struct {
	target lookup.Target
	object *unstructured.Unstructured
	want   string
}

// lastAppliedOf compares an object's record with its file; without an object, they are the
// same.
func lastAppliedOf(ctx context.Context, c *frame.CLI, t lookup.Target, create bool) (change lastAppliedChange, err error) {
	found, err := lookup.Fetch(ctx, c, t, &lookup.Selection{})
	if err != nil {
		return change, err
	}
	have, ok := found[0].GetAnnotations()[threeway.LastApplied]
	if !ok && !create {
		return change, fmt.Errorf(
			"no last-applied-configuration annotation found on resource: %s, to create the annotation, run the "+
				"command with --create-annotation", t.ObjectName)
	}
	// The file as it is: unlike apply, without the annotations it does not have.
	configuration, err := json.Marshal(t.Object.Object)
	if err != nil {
		return change, fmt.Errorf("encoding the configuration: %w", err)
	}
	want := string(configuration) + "\n"
	if have == want {
		return change, nil
	}
	return lastAppliedChange{t, &found[0], want}, nil
}

func (l lastAppliedChange) send(ctx context.Context, s *send.Sender) error {
	object := l.object
	if s.DryRun != frame.DryRunClient {
		body, err := threeway.RememberPatch(l.want)
		if err != nil {
			return fmt.Errorf("encoding the patch: %w", err)
		}
		if object, err = s.Patch(ctx, l.target, types.MergePatchType, body); err != nil {
			return err
		}
	}
	return s.Print(&s.Printing, s.DryRun.Mark("configured"), object)
}
