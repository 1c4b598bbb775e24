package change

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/threeway"
	"kctl/proto/rest"
)

// patchOptions has the flags of `kctl patch`.
type patchOptions struct {
	send.Sender
	lookup.Selection
	kind, text, file, subresource string
	local                         bool
}

func newPatch(c *frame.CLI) *cobra.Command {
	p := &patchOptions{Sender: send.Sender{CLI: c, Printing: frame.Printing{Undivided: true}}}
	cmd := &cobra.Command{
		Use:   "patch (TYPE NAME | TYPE/NAME | -f FILE) [-p PATCH | --patch-file FILE]",
		Short: "Update fields of a resource",
		Example: "  kctl patch node n1 -p '{\"spec\":{\"unschedulable\":true}}'\n" +
			"  kctl patch pod web --type=json -p '[{\"op\":\"remove\",\"path\":\"/metadata/labels/run\"}]'",
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(cmd, args) },
	}
	fs := cmd.Flags()
	p.AddFiles(fs, "identifying the resource to update")
	p.Add(cmd, "kubectl-patch")
	p.AddRecord(cmd)
	fs.StringVar(&p.kind, "type", "strategic", "The type of patch being provided; one of [json merge strategic]")
	fs.StringVarP(&p.text, "patch", "p", "", "The patch to be applied to the resource JSON file.")
	fs.StringVar(&p.file, "patch-file", "", "A file containing a patch to be applied to the resource.")
	p.AddLocal(cmd, &p.local, "If true, patch will operate on the content of the file, not the server-side resource.")
	fs.StringVar(&p.subresource, "subresource", "", "If specified, patch will operate on the subresource of the requested object.")
	return cmd
}

func (p *patchOptions) run(cmd *cobra.Command, args []string) error {
	kinds := map[string]types.PatchType{"json": types.JSONPatchType, "merge": types.MergePatchType, "strategic": types.StrategicMergePatchType}
	kind, ok := kinds[p.kind]
	if !ok {
		return fmt.Errorf("--type must be one of [json merge strategic], not %q", p.kind)
	}
	body, err := p.body()
	if err != nil {
		return err
	}
	if p.local {
		return lookup.Locally(cmd.Context(), p.Sender.CLI, &p.Selection, args, func(_ lookup.Target, object *unstructured.Unstructured) error {
			return p.patchLocally(cmd.Context(), object, kind, body)
		})
	}
	targets, err := lookup.Targets(cmd.Context(), p.Sender.CLI, &p.Selection, args, "")
	failed := []error{err}
	for _, t := range targets {
		if t.ObjectName == "" {
			return lookup.ErrNoName
		}
		failed = append(failed, p.patch(cmd.Context(), t, kind, body))
	}
	return errors.Join(failed...)
}

func (p *patchOptions) body() ([]byte, error) {
	text := []byte(p.text)
	switch {
	case p.text != "" && p.file != "":
		return nil, errors.New("cannot specify --patch and --patch-file together")
	case p.file == "-":
		data, err := io.ReadAll(p.Stdin())
		if err != nil {
			return nil, fmt.Errorf("reading the patch: %w", err)
		}
		text = data
	case p.file != "":
		data, err := os.ReadFile(p.file)
		if err != nil {
			return nil, fmt.Errorf("unable to read patch file: %w", err)
		}
		text = data
	case p.text == "":
		return nil, errors.New("must specify --patch or --patch-file containing the contents of the patch")
	}
	return patchToJSON(text)
}

// patchToJSON returns JSON as it is, and YAML as JSON. What is neither is called what its author
// takes it for.
func patchToJSON(text []byte) ([]byte, error) {
	notJSON := json.Unmarshal(text, new(json.RawMessage))
	if notJSON == nil {
		return text, nil
	}
	body, err := yaml.YAMLToJSON(text)
	switch start := bytes.TrimSpace(text); {
	case err == nil:
		return body, nil
	case bytes.HasPrefix(start, []byte("{")), bytes.HasPrefix(start, []byte("[")):
		return nil, fmt.Errorf("patch is neither JSON nor YAML: %w", notJSON)
	}
	return nil, fmt.Errorf("unable to parse %q: %w", text, err)
}

// patchLocally patches the object of a file. The server is asked only how a
// strategic merge patch merges the lists of its kind.
func (p *patchOptions) patchLocally(ctx context.Context, object *unstructured.Unstructured, kind types.PatchType, body []byte) error {
	var schema threeway.Schema
	if kind == types.StrategicMergePatchType {
		var err error
		if schema, err = p.PatchSchema(ctx, object.GroupVersionKind()); err != nil {
			return err
		}
	}
	patched, err := threeway.Apply(schema, object, body, kind)
	if err != nil {
		return err
	}
	return p.Print(&p.Printing, "patched", patched)
}

func (p *patchOptions) patch(ctx context.Context, t lookup.Target, kind types.PatchType, body []byte) error {
	before, err := lookup.Fetch(ctx, p.Sender.CLI, t, &p.Selection)
	if err != nil {
		return err
	}
	var object *unstructured.Unstructured
	if p.DryRun == frame.DryRunClient {
		schema, err := p.PatchSchema(ctx, t.GVK())
		if err != nil {
			return err
		}
		if object, err = threeway.Apply(schema, &before[0], body, kind); err != nil {
			return err
		}
	} else if object, err = p.Patch(ctx, t, kind, body, rest.Sub(p.subresource)); err != nil {
		return err
	} else if recorded, err := p.PatchCause(ctx, t); err != nil {
		return err
	} else if recorded != nil {
		object = recorded
	}
	// A dry run on the server is not marked, as in kubectl.
	operation := "patched"
	if reflect.DeepEqual(before[0].Object, object.Object) {
		operation = "patched (no change)"
	}
	return p.Print(&p.Printing, operation, object)
}
