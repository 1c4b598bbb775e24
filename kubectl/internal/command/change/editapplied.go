package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/threeway"
)

const editAppliedHelp = `# Please edit the 'last-applied-configuration' annotations below.
# Lines beginning with a '#' will be ignored, and an empty file will abort the edit.
#
`

func newEditLastApplied(c *frame.CLI) *cobra.Command {
	e := &editing{Sender: send.Sender{CLI: c}}
	cmd := &cobra.Command{
		Use: "edit-last-applied (TYPE NAME | TYPE/NAME | -f FILE)", Short: "Edit latest last-applied-configuration annotations of a resource/object",
		Long:    "Edit latest last-applied-configuration annotations of a resource/object, in the editor that $KUBE_EDITOR or $EDITOR\nnames, or else vi. The object itself stays as it is.",
		Example: "  kctl apply edit-last-applied pod/web\n  kctl apply edit-last-applied -f pod.yaml -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if e.format = e.Output; e.format == "" {
				e.format = "yaml"
			}
			targets, err := lookup.Named(cmd.Context(), c, &e.Selection, args, "")
			if err != nil {
				return err
			}
			remembered := 0
			err = lookup.Each(cmd.Context(), c, targets, &e.Selection, func(t lookup.Target, object *unstructured.Unstructured) error {
				if _, ok := object.GetAnnotations()[threeway.LastApplied]; !ok {
					return nil
				}
				remembered++
				return e.editApplied(cmd.Context(), t, object)
			})
			if err == nil && remembered == 0 {
				return errors.New("no last-applied-configuration annotation found on resources, to create the annotation, use command `kctl apply set-last-applied --create-annotation`")
			}
			return err
		},
	}
	fs := cmd.Flags()
	e.AddFiles(fs, "to use to edit the resource")
	e.Printing.Add(fs)
	fs.StringVar(&e.Manager, "field-manager", "kubectl-client-side-apply", "Name of the manager used to track field ownership.")
	return cmd
}

// editApplied lets the user edit what an object remembers of its last apply.
func (e *editing) editApplied(ctx context.Context, t lookup.Target, object *unstructured.Unstructured) error {
	applied := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(object.GetAnnotations()[threeway.LastApplied]), &applied.Object); err != nil {
		return fmt.Errorf("decode the last-applied-configuration annotation: %w", err)
	}
	return e.untilSaved(ctx, editAppliedHelp, applied, func(after []byte) error {
		wanted, err := edited(after, applied)
		if err != nil {
			return err
		}
		text, err := json.Marshal(wanted.Object)
		if err != nil {
			return fmt.Errorf("encoding the configuration: %w", err)
		}
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{threeway.LastApplied: string(text) + "\n"}}})
		if err != nil {
			return fmt.Errorf("encoding the patch: %w", err)
		}
		if _, err := e.Patch(ctx, t, types.MergePatchType, body); err != nil {
			return err
		}
		return e.Print(&e.Printing, "edited", wanted)
	})
}
