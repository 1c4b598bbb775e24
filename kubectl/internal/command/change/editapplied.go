package change

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/manifest"
	"kctl/kubectl/internal/threeway"
	"kctl/proto/rest"
)

const editAppliedHelp = `# Please edit the 'last-applied-configuration' annotations below.
# Lines beginning with a '#' will be ignored, and an empty file will abort the edit.
#
`

func newEditLastApplied(c *frame.CLI) *cobra.Command {
	e := &editOptions{Sender: send.Sender{CLI: c}}
	cmd := &cobra.Command{
		Use:   "edit-last-applied (TYPE NAME | TYPE/NAME | -f FILE)",
		Short: "Edit latest last-applied-configuration annotations of a resource/object",
		Long: "Edit latest last-applied-configuration annotations of a resource/object, in the editor that $KUBE_EDITOR or $EDITOR\n" +
			"names, or else vi. The object itself stays as it is.",
		Example: "  kctl apply edit-last-applied pod/web\n  kctl apply edit-last-applied -f pod.yaml -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := e.objects(cmd.Context(), args)
			if err != nil {
				return err
			}
			var applied []editedObject
			for _, p := range found {
				text, ok := p.object.GetAnnotations()[threeway.LastApplied]
				if !ok {
					continue
				}
				p.object = &unstructured.Unstructured{}
				if err := json.Unmarshal([]byte(text), &p.object.Object); err != nil {
					return fmt.Errorf("decode the last-applied-configuration annotation: %w", err)
				}
				applied = append(applied, p)
			}
			if len(applied) == 0 {
				return fmt.Errorf("no last-applied-configuration annotation found on resources, to create the annotation, use command `%s apply "+
					"set-last-applied --create-annotation`", c.Name)
			}
			return e.editAsOne(cmd.Context(), editAppliedHelp, applied, e.saveApplied)
		},
	}
	fs := cmd.Flags()
	e.AddFiles(fs, "to use to edit the resource")
	e.addFormat(fs)
	fs.BoolVar(&e.crlf, "windows-line-endings", false, "Defaults to the line ending native to your platform.")
	e.AddRecord(cmd)
	e.AddValidation(cmd)
	fs.StringVar(&e.Manager, "field-manager", clientSideManager, "Name of the manager used to track field ownership.")
	return cmd
}

// saveApplied sends the edited last-applied configurations.
func (e *editOptions) saveApplied(ctx context.Context, pieces []editedObject, objects []manifest.Object) error {
	for _, edited := range objects {
		p, err := originalOf(pieces, edited.Unstructured)
		if err != nil {
			return err
		}
		operation := "skipped"
		if !reflect.DeepEqual(p.object.Object, edited.Object) {
			operation = "edited"
			if err := e.saveLastApplied(ctx, p, edited.Unstructured); err != nil {
				return err
			}
		}
		if err := e.Print(&e.Printing, operation, edited.Unstructured); err != nil {
			return err
		}
	}
	return nil
}

func (e *editOptions) saveLastApplied(ctx context.Context, p editedObject, configuration *unstructured.Unstructured) error {
	text, err := json.Marshal(configuration.Object)
	if err != nil {
		return fmt.Errorf("encoding the configuration: %w", err)
	}
	body, err := threeway.RememberPatch(string(text) + "\n")
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	if body, err = e.WithCause(body); err != nil {
		return err
	}
	validation, err := e.FieldValidation()
	if err != nil {
		return err
	}
	_, err = e.Patch(ctx, p.Target, types.MergePatchType, body, rest.Query("fieldValidation", validation))
	return err
}
