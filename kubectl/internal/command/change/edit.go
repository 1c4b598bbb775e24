package change

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/editor"
	"kctl/kubectl/internal/manifest"
	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/threeway"
	"kctl/proto/rest"
)

// editOptions has the flags of one `kctl edit`.
type editOptions struct {
	send.Sender
	lookup.Selection
	crlf      bool
	showPatch bool
}

// editedObject is one of the objects that are edited together.
type editedObject struct {
	lookup.Target
	object *unstructured.Unstructured
}

func newEdit(c *frame.CLI) *cobra.Command {
	e := &editOptions{Sender: send.Sender{CLI: c}}
	cmd := &cobra.Command{
		Use:     "edit (TYPE NAME | TYPE/NAME | -f FILE)",
		Short:   "Edit a resource on the server",
		Long:    "Edit a resource on the server, or several as one list, in the editor that $KUBE_EDITOR or $EDITOR names, or else vi.",
		Example: "  kctl edit pod web\n  KUBE_EDITOR=nano kctl edit deployment/web",
		RunE: func(cmd *cobra.Command, args []string) error {
			pieces, err := e.objects(cmd.Context(), args)
			if err != nil {
				return err
			}
			if len(pieces) == 0 {
				return errors.New("edit cancelled, no objects found")
			}
			for _, p := range pieces {
				unstructured.RemoveNestedField(p.object.Object, "metadata", "managedFields")
			}
			return e.editAsOne(cmd.Context(), send.EditHelp, pieces, e.saveAll)
		},
	}
	fs := cmd.Flags()
	e.AddFiles(fs, "to use to edit the resource")
	e.addFormat(fs)
	fs.StringVar(&e.Manager, "field-manager", "kubectl-edit", "Name of the manager used to track field ownership.")
	fs.StringVar(&e.Sub, "subresource", "", "If specified, edit will operate on the subresource of the requested object.")
	fs.BoolVar(&e.showPatch, "output-patch", false, "Output the patch if the resource is edited.")
	fs.BoolVar(&e.crlf, "windows-line-endings", false, "Defaults to the line ending native to your platform.")
	e.AddSaveConfig(fs)
	e.AddValidation(cmd)
	e.AddRecord(cmd)
	return cmd
}

// addFormat adds the flags that say how an object looks in the editor, which is YAML by
// default, and how the result is printed.
func (e *editOptions) addFormat(fs *pflag.FlagSet) {
	e.Printing.Add(fs) // unchecked: the editor has formats of its own
	fs.Lookup("output").Usage = "Output format, in the editor too. One of: (" + strings.Join(editor.Formats, ", ") + ")"
}

// objects are all the objects that the arguments mean, or none.
func (e *editOptions) objects(ctx context.Context, args []string) ([]editedObject, error) {
	targets, err := lookup.Targets(ctx, e.Sender.CLI, &e.Selection, args, "")
	if err != nil {
		return nil, err
	}
	var all []editedObject
	err = lookup.Each(ctx, e.Sender.CLI, targets, &e.Selection, func(t lookup.Target, object *unstructured.Unstructured) error {
		all = append(all, editedObject{t, object})
		return nil
	})
	return all, err
}

// editAsOne lets the user edit objects in one text: several as a list.
func (e *editOptions) editAsOne(ctx context.Context, help string, pieces []editedObject,
	save func(context.Context, []editedObject, []manifest.Object) error) error {
	var text bytes.Buffer
	format := cmp.Or(e.Output, "yaml")
	shown, err := e.Editable(format)
	if err != nil {
		return err
	}
	var objects []*unstructured.Unstructured
	for _, p := range pieces {
		objects = append(objects, p.object)
	}
	if err := shown.Print(&text, asOne(objects)); err != nil {
		return err
	}
	return e.Edit(ctx, send.Text{Help: help, Format: format, CRLF: e.crlf, Content: text.Bytes()}, func(saved []byte) error {
		objects, err := e.ParseEdited(saved)
		if err != nil {
			return err
		}
		return save(ctx, pieces, objects)
	})
}

// originalOf finds which of the objects an edited one was, by its identity where it has one.
func originalOf(pieces []editedObject, edited *unstructured.Unstructured) (editedObject, error) {
	at := slices.IndexFunc(pieces, func(p editedObject) bool {
		if uid := p.object.GetUID(); uid != "" {
			return uid == edited.GetUID()
		}
		return len(pieces) == 1 || p.object.GroupVersionKind() == edited.GroupVersionKind() &&
			p.object.GetNamespace() == edited.GetNamespace() && p.object.GetName() == edited.GetName()
	})
	if at < 0 {
		return editedObject{}, fmt.Errorf("no original object found for %s %q", edited.GetKind(), edited.GetName())
	}
	was := pieces[at].object
	if was.GetName() != edited.GetName() || was.GroupVersionKind() != edited.GroupVersionKind() {
		return editedObject{}, errors.New("At least one of apiVersion, kind and name was changed") //nolint:staticcheck // kubectl's words
	}
	return pieces[at], nil
}

// saveAll sends what was changed of each object. What the server finds invalid is edited again; what it refuses for other
// reasons stays in the file.
func (e *editOptions) saveAll(ctx context.Context, pieces []editedObject, objects []manifest.Object) error {
	var invalid []editor.Reason
	message := ""
	for _, edited := range objects {
		p, err := originalOf(pieces, edited.Unstructured)
		if err != nil {
			return err
		}
		if reflect.DeepEqual(p.object.Object, edited.Object) {
			if err := e.Print(&e.Printing, "skipped", edited.Unstructured); err != nil {
				return err
			}
			continue
		}
		err = e.save(ctx, p, edited.Unstructured)
		name := fmt.Sprintf("%s %q", p.FullName(), p.ObjectName)
		var refused apierrors.APIStatus
		switch {
		case err == nil:
		case !errors.As(err, &refused):
			return err
		case apierrors.IsInvalid(err):
			fmt.Fprintf(e.Err, "error: %s is invalid\n", name)
			invalid = append(invalid, editor.Reason{What: name + " was not valid", Details: causesOf(refused)})
		case apierrors.IsNotFound(err):
			fmt.Fprintf(e.Err, "error: %s could not be found on the server\n", name)
			message = "The edits you made on deleted resources have been saved to %q"
		default:
			fmt.Fprintf(printer.VisibleTo(e.Err), "error: %s could not be patched: %v\n", name, err)
			message = "You can run `kctl replace -f %s` to try this update again."
		}
	}
	switch {
	case message != "":
		return &editor.KeptError{Message: message}
	case len(invalid) > 0:
		return &editor.RetryError{Reasons: invalid}
	}
	return nil
}

// causesOf are the fields that the server finds wrong.
func causesOf(refused apierrors.APIStatus) []string {
	details := refused.Status().Details
	if details == nil {
		return nil
	}
	var causes []string
	for _, cause := range details.Causes {
		causes = append(causes, strings.TrimPrefix(cause.Field+": "+cause.Message, ": "))
	}
	return causes
}

// save sends what the user changed of an object, and only that.
func (e *editOptions) save(ctx context.Context, p editedObject, edited *unstructured.Unstructured) error {
	if e.SaveConfig {
		if err := threeway.Remember(edited); err != nil {
			return err
		}
	}
	e.Record(edited)
	schema, err := e.PatchSchema(ctx, p.object.GroupVersionKind())
	if err != nil {
		return err
	}
	patch, kind, err := threeway.TwoWay(schema, p.object, edited)
	if err != nil {
		return err
	}
	if e.showPatch {
		fmt.Fprintf(e.Out, "Patch: %s\n", patch)
	}
	validation, err := e.FieldValidation()
	if err != nil {
		return err
	}
	changed, err := e.Patch(ctx, p.Target, kind, patch, rest.Query("fieldValidation", validation), rest.Sub(e.Sub))
	if err != nil {
		return err
	}
	return e.Print(&e.Printing, "edited", changed)
}
