package command

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"kctl/kubectl/internal/threeway"
)

func newViewLastApplied(c *cli) *cobra.Command {
	var selected selection
	var format string
	cmd := &cobra.Command{
		Use: "view-last-applied (TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME)", Short: "View the latest last-applied-configuration annotations of a resource/object",
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "yaml" && format != "json" {
				return usageError(cmd, "Unexpected -o output mode: %s, the flag 'output' must be one of yaml|json", format)
			}
			targets, err := c.targets(cmd.Context(), &selected, args, "")
			if err != nil {
				return err
			}
			return c.each(cmd.Context(), targets, &selected, func(t target, object *unstructured.Unstructured) error {
				text, ok := object.GetAnnotations()[threeway.LastApplied]
				if !ok {
					return fmt.Errorf("no last-applied-configuration annotation found on resource: %s", t.name)
				}
				return c.printApplied(text, format)
			})
		},
	}
	selected.addFiles(cmd.Flags(), "that contains the last-applied-configuration annotations")
	selected.addLabels(cmd.Flags())
	cmd.Flags().BoolVar(&selected.all, "all", false, "Select all resources in the namespace of the specified resource types")
	cmd.Flags().StringVarP(&format, "output", "o", "yaml", "Output format. Must be one of (yaml, json)")
	return cmd
}

func (c *cli) printApplied(text, format string) error {
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

func newSetLastApplied(c *cli) *cobra.Command {
	s := &sending{cli: c}
	var selected selection
	var create bool
	cmd := &cobra.Command{
		Use: "set-last-applied -f FILENAME", Short: "Set the last-applied-configuration annotation on a live object to match the contents of a file",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 || len(selected.files) == 0 {
				return usageError(cmd, "must specify -f, and nothing else")
			}
			targets, err := c.targets(cmd.Context(), &selected, nil, "")
			if err != nil {
				return err
			}
			var failed []error
			for _, t := range targets {
				failed = append(failed, s.setLastApplied(cmd, t, create))
			}
			return errors.Join(failed...)
		},
	}
	selected.addFilenames(cmd.Flags(), "that contains the last-applied-configuration annotations")
	s.output.add(cmd.Flags())
	s.dryRun.add(cmd)
	s.manager = fieldManager
	cmd.Flags().BoolVar(&create, "create-annotation", false, "Will create 'last-applied-configuration' annotations if current objects doesn't have one")
	return cmd
}

func (s *sending) setLastApplied(cmd *cobra.Command, t target, create bool) error {
	found, err := s.fetch(cmd.Context(), t, &selection{})
	if err != nil {
		return err
	}
	have, ok := found[0].GetAnnotations()[threeway.LastApplied]
	if !ok && !create {
		return fmt.Errorf("no last-applied-configuration annotation found on resource: %s, to create the annotation, run the command with --create-annotation", t.name)
	}
	// The file as it is: unlike apply, without the annotations it does not have.
	configuration, err := json.Marshal(t.object.Object)
	if err != nil {
		return fmt.Errorf("encoding the configuration: %w", err)
	}
	want := string(configuration) + "\n"
	if have == want {
		_, err := fmt.Fprintf(s.Out, "set-last-applied %s: no changes required.\n", t.name)
		return err
	}
	object := &found[0]
	if s.dryRun != dryRunClient {
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{threeway.LastApplied: want}}})
		if err != nil {
			return fmt.Errorf("encoding the patch: %w", err)
		}
		if object, err = s.sendPatch(cmd.Context(), t, types.MergePatchType, body); err != nil {
			return err
		}
	}
	return s.print(&s.output, s.dryRun.mark("configured"), object)
}
