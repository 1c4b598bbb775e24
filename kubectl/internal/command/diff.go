package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/threeway"
	"kctl/proto/core"
)

// diffing is one `kctl diff`: an apply that changes nothing, and shows what it
// would change.
type diffing struct {
	applying
	live, merged string // directories
}

// exitDifferent says that there are differences, as diff(1) does.
const exitDifferent = exitCode(1)

// exitDiffFailed is diff's code for everything that went wrong.
const exitDiffFailed = exitCode(2)

func newDiff(c *cli) *cobra.Command {
	d := &diffing{applying: applying{sending: sending{cli: c}, overwrite: true}}
	var managed bool
	cmd := &cobra.Command{
		Use:   "diff -f FILENAME",
		Short: "Diff the live version against a would-be applied version",
		Long: "Diff the live version against a would-be applied version.\n\nThe program that compares is diff(1), or what $KUBECTL_EXTERNAL_DIFF names.\n" +
			"Exit codes: 0, there are no differences; 1, there are some; more, something failed.",
		Example: "  kctl diff -f pod.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			switch {
			case len(args) > 0:
				err = usageError(cmd, "Unexpected args: %v", args)
			case !d.fromFiles():
				err = usageError(cmd, "must specify one of -f and -k")
			default:
				err = d.run(cmd.Context(), managed)
			}
			var code exitCode
			if err == nil || errors.As(err, &code) {
				return err
			}
			c.report(cmd.Context(), cmd, err)
			return exitDiffFailed
		},
	}
	fs := cmd.Flags()
	d.addFiles(fs, "contains the configuration to diff")
	d.addLabels(fs)
	fs.BoolVar(&d.serverSide, "server-side", false, "If true, apply runs in the server instead of the client.")
	fs.BoolVar(&d.forceConflicts, "force-conflicts", false, "If true, server-side apply will force the changes against conflicts.")
	fs.StringVar(&d.manager, "field-manager", "kubectl-client-side-apply", "Name of the manager used to track field ownership.")
	fs.BoolVar(&managed, "show-managed-fields", false, "If true, include managed fields in the diff.")
	return cmd
}

func (d *diffing) run(ctx context.Context, managed bool) error {
	targets, err := d.targets(ctx, &d.selection, nil, "")
	if err != nil {
		return err
	}
	for _, made := range []struct {
		dir  *string
		name string
	}{{&d.live, "LIVE-"}, {&d.merged, "MERGED-"}} {
		if *made.dir, err = os.MkdirTemp("", made.name); err != nil {
			return fmt.Errorf("making a directory to compare in: %w", err)
		}
		defer os.RemoveAll(*made.dir)
	}
	d.dryRun = dryRunServer
	for _, t := range targets {
		if !matches(d.labels, t.object) {
			continue
		}
		if err := d.write(ctx, t, managed); err != nil {
			return err
		}
	}
	return d.compare(ctx)
}

// write writes an object as it is and as it would be.
func (d *diffing) write(ctx context.Context, t target, managed bool) error {
	found, err := d.fetch(ctx, t, &d.selection)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	var live *unstructured.Unstructured
	if len(found) > 0 {
		live = &found[0]
	}
	merged, err := d.would(ctx, t, live)
	if err != nil {
		return err
	}
	if t.GVR() == core.Secrets.GVR() {
		maskSecrets(live, merged)
	}
	name := fmt.Sprintf("%s.%s.%s.%s.%s", t.Group, t.Version, t.Kind, t.namespace, t.name)
	name = strings.TrimPrefix(strings.ReplaceAll(name, "..", "."), ".")
	for dir, object := range map[string]*unstructured.Unstructured{d.live: live, d.merged: merged} {
		var text bytes.Buffer
		if object != nil {
			if !managed {
				unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
			}
			if err := (&printer.YAML{}).Print(&text, object); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o600); err != nil {
			return fmt.Errorf("writing what to compare: %w", err)
		}
	}
	return nil
}

// would is the object as it would be after an apply, but for the annotation by
// which apply remembers: that it is written says nothing.
func (d *diffing) would(ctx context.Context, t target, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	do := d.applyOnce
	switch {
	case d.serverSide:
		do = d.apply
	case live == nil:
		do = d.create
	default:
		annotations := t.object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if remembered, ok := live.GetAnnotations()[threeway.LastApplied]; ok {
			annotations[threeway.LastApplied] = remembered
			t.object.SetAnnotations(annotations)
		}
	}
	merged, _, err := do(ctx, t)
	return merged, err
}

// maskSecrets hides the values of secrets, and keeps to be seen which differ.
func maskSecrets(live, merged *unstructured.Unstructured) {
	data := func(object *unstructured.Unstructured) map[string]any {
		if object == nil {
			return nil
		}
		content, _ := object.Object["data"].(map[string]any)
		return content
	}
	old, new := data(live), data(merged)
	for key, value := range old {
		other, both := new[key]
		switch {
		case !both, other == value:
			old[key] = "***"
			if both {
				new[key] = "***"
			}
		default:
			old[key], new[key] = "*** (before)", "*** (after)"
		}
	}
	for key := range new {
		if _, both := old[key]; !both {
			new[key] = "***"
		}
	}
}

func (d *diffing) compare(ctx context.Context) error {
	program := []string{"diff", "-u", "-N"}
	if named := strings.Fields(os.Getenv("KUBECTL_EXTERNAL_DIFF")); len(named) > 0 {
		program = named
	}
	command := exec.CommandContext(ctx, program[0], append(program[1:], d.live, d.merged)...) //nolint:gosec // the user's own program
	command.Stdout, command.Stderr = d.Out, d.Err
	err := command.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() == int(exitDifferent) {
		return exitDifferent
	}
	if err != nil {
		return fmt.Errorf("failed to run %q: %w", program[0], err)
	}
	return nil
}
