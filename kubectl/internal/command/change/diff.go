package change

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

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/threeway"
	"kctl/proto/core"
)

// diffOptions has the flags of one `kctl diff`: an apply that changes nothing, and shows what it
// would change.
type diffOptions struct {
	applyOptions
	live, merged string // directories
	managed      bool
	secrets      bool
}

// exitDifferent says that there are differences, as diff(1) does.
const exitDifferent = frame.ExitCode(1)

// exitDiffFailed is diff's exit code for any failure.
const exitDiffFailed = frame.ExitCode(2)

func newDiff(c *frame.CLI) *cobra.Command {
	d := &diffOptions{applyOptions: applyOptions{Sender: send.Sender{CLI: c}, overwrite: true, comparing: true}}
	cmd := &cobra.Command{
		Use:   "diff -f FILENAME",
		Short: "Diff the live version against a would-be applied version",
		Long: "Diff the live version against a would-be applied version.\n\nThe program that compares is diff(1), or what " +
			"$KUBECTL_EXTERNAL_DIFF names.\n" +
			"Exit codes: 0, there are no differences; 1, there are some; more, something failed.",
		Example: "  kctl diff -f pod.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			switch {
			case len(args) > 0:
				err = frame.UsageError(cmd, "Unexpected args: %v", args)
			case !d.FromFiles():
				err = lookup.ErrNoFile
			case d.forceConflicts && !d.serverSide:
				err = errForceConflicts
			default:
				err = d.run(cmd.Context())
			}
			var code frame.ExitCode
			if err == nil || errors.As(err, &code) {
				return err
			}
			return d.failed(cmd.Context(), err)
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return d.failed(cmd.Context(), frame.FlagError(cmd, err)) })
	fs := cmd.Flags()
	d.AddFiles(fs, "contains the configuration to diff")
	d.AddLabels(fs)
	fs.BoolVar(&d.serverSide, "server-side", false, "If true, apply runs in the server instead of the client.")
	fs.BoolVar(&d.forceConflicts, "force-conflicts", false, "If true, server-side apply will force the changes against conflicts.")
	fs.StringVar(&d.Manager, "field-manager", clientSideManager, "Name of the manager used to track field ownership.")
	fs.Int("concurrency", 1, "It has no effect: objects are compared one after the other, which is quick enough.")
	fs.BoolVar(&d.managed, "show-managed-fields", false, "If true, include managed fields in the diff.")
	fs.BoolVar(&d.secrets, "show-secrets", false, "If true, show the values of secrets, and not only which differ.")
	fs.BoolVar(&d.pruned.wanted, "prune", false,
		"Include resources that would be deleted by pruning. Can be used with -l and default shows all resources would be pruned")
	fs.StringArrayVar(&d.pruned.allowlist, "prune-allowlist", nil, "Overwrite the default allowlist with <group/version/kind> for --prune")
	return cmd
}

// failed reports an error and makes the exit code diff's: 1 would say that there are
// differences.
func (d *diffOptions) failed(ctx context.Context, err error) error {
	d.applyOptions.Sender.Report(ctx, err)
	return exitDiffFailed
}

func (d *diffOptions) run(ctx context.Context) error {
	targets, err := lookup.Targets(ctx, d.applyOptions.Sender.CLI, &d.Selection, nil, "")
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
	if err := d.findPruned(ctx); err != nil {
		return err
	}
	d.DryRun = frame.DryRunServer
	d.Validation = "warn" // changes of fields that would be refused are shown, too
	for _, t := range targets {
		if !lookup.Matches(d.Labels, t.Object) {
			continue
		}
		if err := d.writeVersions(ctx, t); err != nil {
			return err
		}
	}
	if err := d.writePruned(ctx); err != nil {
		return err
	}
	return d.compare(ctx)
}

// writePruned writes what --prune would delete, which has no merged version.
func (d *diffOptions) writePruned(ctx context.Context) error {
	if !d.pruned.wanted {
		return nil
	}
	return d.forEachPruned(ctx, func(t lookup.Target, object *unstructured.Unstructured) error {
		if d.masks(t) {
			hideSecrets(object)
		}
		return d.writeTo(d.live, t, object)
	})
}

// writeVersions writes an object's current and future version.
func (d *diffOptions) writeVersions(ctx context.Context, t lookup.Target) error {
	found, err := lookup.Fetch(ctx, d.applyOptions.Sender.CLI, t, &lookup.Selection{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	var live *unstructured.Unstructured
	if len(found) > 0 {
		live = &found[0]
		d.pruned.recordApplied(t, live.GetUID())
	} else {
		d.pruned.recordApplied(t, "") // its namespace may have others
	}
	merged, err := d.dryRunApply(ctx, t, live)
	if err != nil {
		return err
	}
	if d.masks(t) {
		maskSecrets(live, merged)
	}
	return errors.Join(d.writeTo(d.live, t, live), d.writeTo(d.merged, t, merged))
}

// writeTo writes an object, or that there is none, to a directory.
func (d *diffOptions) writeTo(dir string, t lookup.Target, object *unstructured.Unstructured) error {
	name := fmt.Sprintf("%s.%s.%s.%s.%s", t.Group, t.Version, t.Kind, t.Namespace, t.ObjectName)
	name = strings.TrimPrefix(strings.ReplaceAll(name, "..", "."), ".")
	name = strings.ReplaceAll(name, "/", "_") // of what would be pruned, a server says the names
	var text bytes.Buffer
	if object != nil {
		if !d.managed {
			unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
		}
		if err := (&printer.YAML{}).Print(&text, object); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing what to compare: %w", err)
	}
	return nil
}

// dryRunApply returns the object as it would be after an apply, except for the
// last-applied annotation, whose change is of no interest.
func (d *diffOptions) dryRunApply(ctx context.Context, t lookup.Target,
	live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	do := d.applyOnce
	switch {
	case d.serverSide:
		do = d.apply
	case live == nil:
		do = d.create
	default:
		annotations := t.Object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if remembered, ok := live.GetAnnotations()[threeway.LastApplied]; ok {
			annotations[threeway.LastApplied] = remembered
			t.Object.SetAnnotations(annotations)
		}
	}
	merged, _, err := do(ctx, t)
	return merged, err
}

// masks tells whether an object's values are not to be shown.
func (d *diffOptions) masks(t lookup.Target) bool {
	return !d.secrets && t.GVR() == core.Secrets.GVR()
}

// hideSecrets hides the values of a secret wherever it holds them.
func hideSecrets(object *unstructured.Unstructured) {
	maskSecrets(object, nil)
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", threeway.LastApplied)
}

// maskSecrets hides the values of secrets, but shows which differ.
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

func (d *diffOptions) compare(ctx context.Context) error {
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
