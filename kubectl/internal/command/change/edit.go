package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/manifest"
	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/threeway"
	"kctl/proto/rest"
)

// editing is one `kctl edit`.
type editing struct {
	send.Sender
	lookup.Selection
	format      string
	subresource string
	showPatch   bool
}

func newEdit(c *frame.CLI) *cobra.Command {
	e := &editing{Sender: send.Sender{CLI: c}}
	cmd := &cobra.Command{
		Use:     "edit (TYPE NAME | TYPE/NAME | -f FILE)",
		Short:   "Edit a resource on the server",
		Long:    "Edit a resource on the server, in the editor that $KUBE_EDITOR or $EDITOR names, or else vi.",
		Example: "  kctl edit pod web\n  KUBE_EDITOR=nano kctl edit deployment/web",
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := lookup.Named(cmd.Context(), e.Sender.CLI, &e.Selection, args, "")
			if err != nil {
				return err
			}
			return lookup.Each(cmd.Context(), e.Sender.CLI, targets, &e.Selection, func(t lookup.Target, object *unstructured.Unstructured) error {
				return e.edit(cmd.Context(), t, object)
			})
		},
	}
	fs := cmd.Flags()
	e.AddFiles(fs, "to use to edit the resource")
	fs.StringVarP(&e.format, "output", "o", "yaml", "Output format. One of: (json, yaml).")
	fs.StringVar(&e.Manager, "field-manager", "kubectl-edit", "Name of the manager used to track field ownership.")
	fs.StringVar(&e.subresource, "subresource", "", "If specified, edit will operate on the subresource of the requested object.")
	fs.BoolVar(&e.showPatch, "output-patch", false, "Output the patch if the resource is edited.")
	e.AddSaveConfig(fs)
	e.AddValidation(cmd)
	return cmd
}

const editHelp = `# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.
#
`

// edit lets the user edit an object.
func (e *editing) edit(ctx context.Context, t lookup.Target, object *unstructured.Unstructured) error {
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	return e.untilSaved(ctx, editHelp, object, func(after []byte) error { return e.save(ctx, t, object, after) })
}

// untilSaved opens the editor until what comes out of it is accepted by save, or
// given up.
func (e *editing) untilSaved(ctx context.Context, help string, object *unstructured.Unstructured, save func(after []byte) error) error {
	content, err := e.shown(object)
	if err != nil {
		return err
	}
	problem := ""
	before := content
	for {
		after, path, err := e.openEditor(ctx, help, content, problem)
		if err != nil {
			return err
		}
		switch {
		case len(after) == 0:
			fmt.Fprintln(e.Err, "Edit cancelled, saved file was empty.")
			return os.Remove(path)
		case bytes.Equal(after, before) && problem == "":
			fmt.Fprintln(e.Err, "Edit cancelled, no changes made.")
			return os.Remove(path)
		case bytes.Equal(after, content) && problem != "":
			fmt.Fprintf(e.Err, "A copy of your changes has been stored to %q\n", path)
			return errors.New("Edit cancelled, no valid changes were saved.") //nolint:staticcheck // kubectl's words
		}
		if err = save(after); err == nil || ctx.Err() != nil {
			return errors.Join(err, os.Remove(path))
		}
		fmt.Fprintln(e.Err, strings.TrimPrefix(e.CLI.Text(err), "error: "))
		content, problem = after, e.CLI.Text(err)
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing the edited file: %w", err)
		}
	}
}

func (e *editing) shown(object *unstructured.Unstructured) ([]byte, error) {
	if e.format != "yaml" && e.format != "json" {
		return nil, fmt.Errorf("the flag 'output' must be one of yaml|json")
	}
	p, err := printer.New(printer.Options{Output: e.format})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = p.Print(&out, object)
	return out.Bytes(), err
}

// openEditor lets the user edit a file, and returns what was saved, without the
// comments above it.
func (e *editing) openEditor(ctx context.Context, help string, content []byte, problem string) (after []byte, path string, err error) {
	file, err := os.CreateTemp("", "kctl-edit-*."+e.format)
	if err != nil {
		return nil, "", fmt.Errorf("making the file to edit: %w", err)
	}
	path = file.Name()
	head := help
	for _, line := range strings.Split(strings.TrimSpace(problem), "\n") {
		if problem != "" {
			head += "# " + line + "\n"
		}
	}
	_, err = file.Write(append([]byte(head), content...))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, path, fmt.Errorf("writing the file to edit: %w", err)
	}
	editor := os.Getenv("KUBE_EDITOR")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	// Through a shell: editors are given with arguments, "code --wait".
	command := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "sh", path)
	command.Stdin, command.Stdout, command.Stderr = e.In, e.Out, e.Err
	if err := command.Run(); err != nil {
		return nil, path, errors.Join(fmt.Errorf("there was a problem with the editor %q: %w", editor, err), os.Remove(path))
	}
	saved, err := os.ReadFile(path)
	if err != nil {
		return nil, path, fmt.Errorf("reading the edited file: %w", err)
	}
	return withoutHead(saved), path, nil
}

// withoutHead cuts the comment lines above the content.
func withoutHead(saved []byte) []byte {
	for bytes.HasPrefix(saved, []byte("#")) {
		_, rest, _ := bytes.Cut(saved, []byte("\n"))
		saved = rest
	}
	if len(bytes.TrimSpace(saved)) == 0 {
		return nil
	}
	return saved
}

// edited reads the object that came out of the editor: still the one that went in.
func edited(text []byte, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	parsed, err := manifest.Parse(text, "edited-file")
	if err != nil {
		return nil, err
	}
	if len(parsed) != 1 {
		return nil, fmt.Errorf("edited-file has %d objects, not one", len(parsed))
	}
	wanted := parsed[0].Unstructured
	if wanted.GetName() != object.GetName() || wanted.GroupVersionKind() != object.GroupVersionKind() {
		return nil, errors.New("at least one of apiVersion, kind and name was changed")
	}
	return wanted, nil
}

// save sends what the user changed, and only that.
func (e *editing) save(ctx context.Context, t lookup.Target, object *unstructured.Unstructured, text []byte) error {
	wanted, err := edited(text, object)
	if err != nil {
		return err
	}
	if e.SaveConfig {
		if err := send.RememberApplied(wanted); err != nil {
			return err
		}
	}
	schema, err := e.PatchSchema(ctx, object.GroupVersionKind())
	if err != nil {
		return err
	}
	patch, kind, err := threeway.TwoWay(schema, object, wanted)
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
	more := []rest.Option{rest.Query("fieldValidation", validation)}
	if e.subresource != "" {
		more = append(more, rest.Sub(e.subresource))
	}
	changed, err := e.Patch(ctx, t, kind, patch, more...)
	if err != nil {
		return err
	}
	return e.Print(&e.Printing, "edited", changed)
}
