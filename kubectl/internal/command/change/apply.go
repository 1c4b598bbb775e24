package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/threeway"
	"kctl/proto/rest"
)

// applyOptions has the flags of one `kctl apply`.
type applyOptions struct {
	send.Sender
	lookup.Selection
	serverSide     bool
	forceConflicts bool
	force          bool // delete and recreate what can't be changed
	overwrite      bool
	grace          int64
	timeout        time.Duration
	cascade        send.Cascade
	subresource    string
	pruned         pruneOptions
	set            applySet
	comparing      bool // for diff: nothing is changed, nor will be

	done []*unstructured.Unstructured // for -o, which prints one document for all
}

// clientSideManager is the field manager of client-side applies.
const clientSideManager = "kubectl-client-side-apply"

func newApply(c *frame.CLI) *cobra.Command {
	a := &applyOptions{Sender: send.Sender{CLI: c}}
	cmd := &cobra.Command{
		Use:   "apply -f FILENAME",
		Short: "Apply a configuration to a resource by file name or stdin",
		Long: "Apply a configuration to a resource by file name or stdin.\n\n" +
			"What was applied is remembered in the object, in the annotation that kubectl uses too:\n" +
			"fields left out of the file the next time are removed, fields that others set stay.",
		Example: "  kctl apply -f pod.yaml\n  kctl apply -R -f manifests/\n  cat pod.json | kctl apply -f -",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.Start()
			if len(args) > 0 {
				return frame.UsageError(cmd, "Unexpected args: %v", args)
			}
			if !a.FromFiles() {
				return lookup.ErrNoFile
			}
			if err := a.check(cmd.Context()); err != nil {
				return err
			}
			return a.run(cmd.Context())
		},
	}
	a.AddFiles(cmd.Flags(), "that contains the configuration to apply")
	a.AddLabels(cmd.Flags())
	a.Add(cmd, clientSideManager)
	a.AddValidation(cmd)
	a.Checked = a.FieldValidation
	a.AddRecord(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&a.serverSide, "server-side", false, "If true, apply runs in the server instead of the client.")
	fs.BoolVar(&a.forceConflicts, "force-conflicts", false, "If true, server-side apply will force the changes against conflicts.")
	cmd.AddCommand(newViewLastApplied(c), newSetLastApplied(c), newEditLastApplied(c))
	fs.BoolVar(&a.force, "force", false, "If true, objects that can't be changed into what is applied are deleted and made anew.")
	fs.BoolVar(&a.overwrite, "overwrite", true,
		"Automatically resolve conflicts between the modified and live configuration by using values from the modified configuration")
	fs.Bool("openapi-patch", true,
		"It has no effect: how lists are merged is always taken from what the server says of its kinds, where it does.")
	fs.Int64Var(&a.grace, "grace-period", -1,
		"Period of time in seconds given to what --force and --prune delete to terminate gracefully. Ignored if negative.")
	fs.DurationVar(&a.timeout, "timeout", 0, "The length of time to wait for what --force deletes. Zero means for as long as it takes.")
	a.cascade.Add(fs, `Must be "background", "orphan", or "foreground": what becomes of the dependents of what --force and --prune delete.`)
	fs.Bool("wait", false, "It has no effect: what --force deletes is always waited for, what --prune deletes never.")
	fs.StringVar(&a.subresource, "subresource", "",
		"If specified, apply will operate on the subresource of the requested object. Only with --server-side.")
	fs.BoolVar(&a.pruned.wanted, "prune", false,
		"Delete what was applied before, is selected by --selector or --all, and is not in the files. Must be used with --selector or --all.")
	fs.BoolVar(&a.pruned.all, "all", false, "Select all resources in the namespaces of the files for --prune.")
	if applySetWanted() {
		fs.StringVar(&a.set.ref, "applyset", "",
			"[alpha] The object, as [RESOURCE][.GROUP]/NAME, or a secret's name, that tracks what is applied together: with --prune, what was and "+
				"is not in the files is deleted.")
	}
	fs.StringArrayVar(&a.pruned.allowlist, "prune-allowlist", nil,
		"Instead of the kinds that --prune looks through, those of <group/version/kind>. May be repeated.")
	return cmd
}

// errForceConflicts is said by apply and diff.
var errForceConflicts = errors.New("--force-conflicts only works with --server-side")

// check refuses flags that do not go together.
func (a *applyOptions) check(ctx context.Context) error {
	switch {
	case a.serverSide && a.DryRun == frame.DryRunClient:
		return errors.New("--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)")
	case a.forceConflicts && !a.serverSide:
		return errForceConflicts
	case a.subresource != "" && !a.serverSide:
		return errors.New("--subresource can only be specified for --server-side")
	case a.force && a.serverSide:
		return errors.New("--force cannot be used with --server-side")
	case a.force && a.DryRun == frame.DryRunServer:
		return errors.New("--dry-run=server cannot be used with --force")
	case a.force && a.pruned.wanted:
		return errors.New("--force cannot be used with --prune")
	case !a.overwrite && a.serverSide:
		return errors.New("--overwrite=false cannot be used with --server-side")
	}
	if err := a.cascade.Settle(a.Err); err != nil {
		return err
	}
	if a.set.ref != "" {
		return a.checkSet(ctx)
	}
	if a.pruned.wanted && a.serverSide {
		return errors.New("--prune is in alpha and doesn't currently work on objects created by server-side apply")
	}
	return a.pruned.check(a.Labels)
}

// findPruned finds out which kinds --prune looks through.
func (a *applyOptions) findPruned(ctx context.Context) error {
	if !a.pruned.wanted {
		return nil
	}
	discovery, err := a.Discovery()
	if err != nil {
		return err
	}
	return a.pruned.findKinds(ctx, discovery)
}

func (a *applyOptions) run(ctx context.Context) error {
	a.InOrder = a.DryRun == frame.DryRunNone
	targets, err := lookup.Targets(ctx, a.Sender.CLI, &a.Selection, nil, "")
	if len(targets) == 0 {
		return cmp.Or(err, errNothingToApply)
	}
	if a.set.ref != "" {
		if err := a.beginSet(ctx, targets); err != nil {
			return err
		}
	} else if err := a.findPruned(ctx); err != nil {
		return err
	}
	failed := []error{err}
	applied := 0
	for _, t := range targets {
		if !lookup.Matches(a.Labels, t.Object) {
			continue
		}
		applied++
		if err := t.AwaitServed(ctx, a.Sender.CLI); err != nil {
			failed = append(failed, err)
			continue
		}
		object, operation, err := a.apply(ctx, t)
		if err != nil {
			failed = append(failed, frame.InSource(err, "applying patch to", t.Source))
			continue
		}
		if object.GetDeletionTimestamp() != nil && a.DryRun != frame.DryRunClient {
			a.Warn("Detected changes to resource %s which is currently being deleted.", object.GetName())
		}
		a.pruned.recordApplied(t, object.GetUID())
		if err := a.printResult(t, object, operation); err != nil {
			return err
		}
	}
	if applied == 0 {
		return errNothingToApply
	}
	if len(a.done) > 0 {
		failed = append(failed, a.printDone())
	}
	if a.pruned.wanted && errors.Join(failed...) == nil {
		return a.prune(ctx)
	}
	return errors.Join(failed...)
}

var errNothingToApply = errors.New("no objects passed to apply")

func (a *applyOptions) printResult(t lookup.Target, object *unstructured.Unstructured, operation string) error {
	switch {
	case !a.Chosen():
		fmt.Fprintf(a.Out, "%s %s\n", printer.ObjectName(t.GVK(), t.ObjectName), a.DryRun.Mark(operation))
		return nil
	case a.Output == "name":
		fmt.Fprintln(a.Out, printer.ObjectName(t.GVK(), t.ObjectName))
		return nil
	}
	a.done = append(a.done, object)
	return nil
}

func (a *applyOptions) printDone() error {
	p, err := printer.New(a.Options)
	if err != nil {
		return err
	}
	return p.Print(a.Out, asOne(a.done))
}

// asOne is a single object as it is, and a list of several.
func asOne(objects []*unstructured.Unstructured) runtime.Object {
	if len(objects) == 1 {
		return objects[0]
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}}}
	for _, object := range objects {
		list.Items = append(list.Items, *object)
	}
	return list
}

func (a *applyOptions) apply(ctx context.Context, t lookup.Target) (*unstructured.Unstructured, string, error) {
	a.Record(t.Object)
	if a.serverSide {
		return a.applyServerSide(ctx, t)
	}
	if err := threeway.Remember(t.Object); err != nil {
		return nil, "", err
	}
	for attempt := 0; ; attempt++ {
		object, operation, err := a.applyOnce(ctx, t)
		if apierrors.IsConflict(err) && attempt < send.MaxConflicts {
			continue
		}
		return object, operation, err
	}
}

func (a *applyOptions) applyOnce(ctx context.Context, t lookup.Target) (*unstructured.Unstructured, string, error) {
	client, err := a.Server()
	if err != nil {
		return nil, "", err
	}
	var answer []byte
	err = t.In(client).Get(ctx, t.ObjectName, &answer)
	if apierrors.IsNotFound(err) {
		return a.create(ctx, t)
	}
	if err != nil {
		return nil, "", err
	}
	current, err := lookup.Decode(answer)
	if err != nil {
		return nil, "", err
	}
	if _, managed := current.GetAnnotations()[threeway.LastApplied]; !managed && !a.comparing {
		a.Warn("resource %s/%s is missing the %s annotation which is required by %[4]s apply. %[4]s apply should only be used on resources "+
			"created declaratively by either %[4]s create --save-config or %[4]s apply. The missing annotation will be patched automatically.",
			t.Name, t.ObjectName, threeway.LastApplied, a.Name)
	}
	schema, err := a.PatchSchema(ctx, t.GVK())
	if err != nil {
		return nil, "", err
	}
	patch, kind, err := threeway.Patch(schema, current, t.Object, a.overwrite)
	if err != nil {
		return nil, "", err
	}
	if string(patch) == "{}" {
		return current, "unchanged", nil
	}
	if a.DryRun == frame.DryRunClient {
		changed, err := threeway.Apply(schema, current, patch, kind)
		return changed, "configured", err
	}
	patched, err := a.send(ctx, t, kind, patch)
	if a.force && (apierrors.IsInvalid(err) || apierrors.IsConflict(err)) {
		patched, err = a.replace(ctx, t, current)
	}
	return patched, "configured", err
}

func (a *applyOptions) create(ctx context.Context, t lookup.Target) (*unstructured.Unstructured, string, error) {
	threeway.Prune(t.Object.Object)
	if a.DryRun == frame.DryRunClient {
		return t.Object, "created", nil
	}
	created, err := a.Post(ctx, t.Resource.Resource, t.Namespace, t.Object)
	return created, "created", frame.InSource(err, "creating", t.Source)
}

func (a *applyOptions) send(ctx context.Context, t lookup.Target, kind types.PatchType, patch []byte,
	more ...rest.Option) (*unstructured.Unstructured, error) {
	return a.sendAs(ctx, t, a.Manager, kind, patch, more...)
}

func (a *applyOptions) sendAs(ctx context.Context, t lookup.Target, manager string, kind types.PatchType, patch []byte,
	more ...rest.Option) (*unstructured.Unstructured, error) {
	client, err := a.Server()
	if err != nil {
		return nil, err
	}
	validation, err := a.FieldValidation()
	if err != nil {
		return nil, err
	}
	options := append(more, rest.Query("fieldManager", manager), rest.Query("fieldValidation", validation),
		rest.Query("dryRun", a.DryRun.Query()))
	var answer []byte
	if err := t.In(client).Patch(ctx, t.ObjectName, kind, patch, &answer, options...); err != nil {
		return nil, err
	}
	return lookup.Decode(answer)
}

func (a *applyOptions) applyServerSide(ctx context.Context, t lookup.Target) (*unstructured.Unstructured, string, error) {
	body, err := t.Object.MarshalJSON()
	if err != nil {
		return nil, "", fmt.Errorf("encoding the object: %w", err)
	}
	if a.Manager == clientSideManager {
		a.Manager = send.FieldManager
	}
	force := ""
	if a.forceConflicts {
		force = "true"
	}
	apply := func() (*unstructured.Unstructured, error) {
		options := append(a.Stamps(t.Resource.Resource), rest.Query("force", force), rest.Sub(a.subresource))
		return a.send(ctx, t, types.ApplyPatchType, body, options...)
	}
	applied, err := apply()
	if err == nil && !a.comparing {
		applied = a.migrate(ctx, t, applied, apply)
	}
	// as far as can be told, a new one
	if client, unreachable := a.Server(); err == nil && unreachable == nil && !a.comparing && applied.GetGeneration() == 1 {
		a.WarnUncontrolled(ctx, client, t.Resource.Resource, applied)
	}
	return applied, "serverside-applied", err
}
