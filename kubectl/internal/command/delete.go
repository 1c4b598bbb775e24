package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/printer"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// deleting is one `kctl delete`.
type deleting struct {
	*cli
	selection
	dryRun         dryRun
	grace          int64
	force, now     bool
	wait           bool
	timeout        time.Duration
	cascade        string
	ignoreNotFound bool
	nameOnly       string
	interactive    bool
	raw            raw
}

func newDelete(c *cli) *cobra.Command {
	d := &deleting{cli: c, raw: raw{cli: c}}
	cmd := &cobra.Command{
		Use:     "delete (TYPE NAME... | TYPE/NAME... | TYPE -l SELECTOR | TYPE --all | -f FILE)",
		Short:   "Delete resources by file names, stdin, resources and names, or by resources and label selector",
		Example: "  kctl delete pod web\n  kctl delete -f pod.yaml --now\n  kctl delete pods -l run=web --wait=false",
		RunE:    func(cmd *cobra.Command, args []string) error { return d.run(cmd, args) },
	}
	fs := cmd.Flags()
	d.addFiles(fs, "containing the resource to delete.")
	d.addLabels(fs)
	d.addFields(fs)
	d.addAllNamespaces(fs)
	d.dryRun.add(cmd)
	fs.BoolVar(&d.all, "all", false, "Delete all resources, in the namespace of the specified resource types.")
	fs.Int64Var(&d.grace, "grace-period", -1, "Period of time in seconds given to the resource to terminate gracefully. Ignored if negative. Can only be set to 0 when --force is true.")
	fs.BoolVar(&d.force, "force", false, "If true, immediately remove resources from API and bypass graceful deletion.")
	fs.BoolVar(&d.now, "now", false, "If true, resources are signaled for immediate shutdown (same as --grace-period=1).")
	fs.BoolVar(&d.wait, "wait", true, "If true, wait for resources to be gone before returning. This waits for finalizers.")
	fs.DurationVar(&d.timeout, "timeout", 0, "The length of time to wait before giving up on a delete, zero means determine a timeout from the size of the object")
	fs.StringVar(&d.cascade, "cascade", "background", `Must be "background", "orphan", or "foreground".`)
	fs.Lookup("cascade").NoOptDefVal = "background"
	d.raw.add(cmd, http.MethodDelete, "DELETE to")
	fs.BoolVar(&d.ignoreNotFound, "ignore-not-found", false, `Treat "resource not found" as a successful delete. Defaults to "true" when --all is specified.`)
	fs.BoolVarP(&d.interactive, "interactive", "i", false, "If true, delete resource only when user confirms.")
	fs.StringVarP(&d.nameOnly, "output", "o", "", "Output mode. Use \"-o name\" for shorter output (resource/name).")
	return cmd
}

func (d *deleting) check(args []string) error {
	if d.now {
		if d.grace >= 0 {
			return errors.New("--now and --grace-period cannot be specified together")
		}
		d.grace = 1
	}
	if d.force && d.grace < 0 {
		d.grace = 0
	}
	if d.grace == 0 && !d.force {
		// As kubectl: without --force, wait for the shortest grace there is.
		d.grace = 1
	}
	switch d.cascade {
	case "background", "orphan", "foreground":
	default:
		return fmt.Errorf(`invalid cascade value (%v). Must be "background", "foreground", or "orphan"`, d.cascade)
	}
	if d.nameOnly != "" && d.nameOnly != "name" {
		return fmt.Errorf("unexpected -o output mode: %v. We only support '-o name'", d.nameOnly)
	}
	if d.all && d.labels+d.fields != "" {
		return errors.New("setting 'all' parameter but found a non empty selector.") //nolint:staticcheck // kubectl's words
	}
	if d.all {
		d.ignoreNotFound = true
	}
	if len(args) == 1 && !d.fromFiles() && !d.all && d.labels == "" && d.fields == "" {
		if _, isName := splitName(args[0]); !isName {
			return errNoName
		}
	}
	return nil
}

func (d *deleting) run(cmd *cobra.Command, args []string) error {
	if d.raw.uri != "" {
		if len(args) > 0 {
			return usageError(cmd, "arguments may not be passed when --raw is specified")
		}
		return d.raw.run(cmd, d.files)
	}
	if err := d.check(args); err != nil {
		return err
	}
	targets, err := d.targets(cmd.Context(), &d.selection, args, "")
	if len(targets) == 0 && err != nil {
		return err
	}
	chosen, failed := d.choose(cmd.Context(), targets)
	failed = append(failed, err)
	if err := errors.Join(failed...); d.interactive && err != nil {
		return err // nobody can agree to what is not all there is
	}
	if d.interactive && len(chosen) > 0 {
		if agreed, err := d.confirm(chosen); !agreed {
			return err
		}
	}
	if d.force && d.dryRun == dryRunNone {
		d.warn("Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.")
	}
	var going []victim
	for _, t := range chosen {
		uid, err := d.remove(cmd.Context(), t)
		if err == nil {
			going = append(going, victim{t, uid})
		} else if !(d.ignoreNotFound && apierrors.IsNotFound(err)) {
			failed = append(failed, inSource(err, "deleting", t.source))
		}
	}
	if len(chosen) == 0 && errors.Join(failed...) == nil {
		fmt.Fprintln(d.Out, "No resources found")
	}
	if err := d.await(cmd.Context(), going); err != nil {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// choose finds the objects that the targets mean, and what kept it from finding
// those of some.
func (d *deleting) choose(ctx context.Context, targets []target) (chosen []target, failed []error) {
	for _, t := range targets {
		names, err := d.names(ctx, t)
		if err != nil {
			failed = append(failed, err)
		}
		chosen = append(chosen, names...)
	}
	return chosen, failed
}

// confirm asks whether these are to go. Only y is a yes.
func (d *deleting) confirm(chosen []target) (bool, error) {
	fmt.Fprintf(d.Out, "You are about to delete the following %d resource(s):\n", len(chosen))
	for _, t := range chosen {
		fmt.Fprintln(d.Out, printer.ObjectName(t.GVK(), t.name))
	}
	fmt.Fprint(d.Out, "Do you want to continue? (y/N): ")
	answer, err := bufio.NewReader(d.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	if !strings.EqualFold(strings.TrimSpace(answer), "y") {
		fmt.Fprintln(d.Out, "deletion is cancelled")
		return false, nil
	}
	return true, nil
}

// names are the objects that a target means.
func (d *deleting) names(ctx context.Context, t target) ([]target, error) {
	if t.name != "" {
		return []target{t}, nil
	}
	found, err := d.fetch(ctx, t, &d.selection)
	if err != nil {
		return nil, err
	}
	var all []target
	for i := range found {
		named := t
		named.name, named.namespace = found[i].GetName(), found[i].GetNamespace()
		all = append(all, named)
	}
	return all, nil
}

// victim is an object on its way out.
type victim struct {
	target
	uid types.UID
}

func (d *deleting) remove(ctx context.Context, t target) (types.UID, error) {
	client, err := d.server()
	if err != nil {
		return "", err
	}
	var uid types.UID
	if d.dryRun != dryRunClient {
		if uid, err = removeObject(ctx, t.in(client), t.name, d.options()); err != nil {
			return "", err
		}
	}
	d.say(t)
	return uid, nil
}

func removeObject(ctx context.Context, from rest.Resource, name string, options *metav1.DeleteOptions) (types.UID, error) {
	var answer []byte
	if err := from.Delete(ctx, name, options, &answer); err != nil {
		return "", err
	}
	object, err := decode(answer)
	if err != nil {
		return "", err
	}
	if object.GetKind() == "Status" {
		uid, _, err := unstructured.NestedString(object.Object, "details", "uid")
		if err != nil {
			return "", fmt.Errorf("decode answer: %w", err)
		}
		return types.UID(uid), nil
	}
	return object.GetUID(), nil
}

func (d *deleting) options() *metav1.DeleteOptions {
	propagation := map[string]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground,
		"foreground": metav1.DeletePropagationForeground,
		"orphan":     metav1.DeletePropagationOrphan,
	}[d.cascade]
	options := &metav1.DeleteOptions{PropagationPolicy: &propagation}
	options.APIVersion, options.Kind = "v1", "DeleteOptions"
	if d.grace >= 0 {
		options.GracePeriodSeconds = &d.grace
	}
	if d.dryRun == dryRunServer {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options
}

func (d *deleting) say(t target) {
	if d.nameOnly != "" {
		fmt.Fprintln(d.Out, printer.ObjectName(t.GVK(), t.name))
		return
	}
	kind := strings.ToLower(t.Kind)
	if t.Group != "" {
		kind += "." + t.Group
	}
	operation := "deleted"
	if d.force && d.grace == 0 {
		operation = "force deleted"
	}
	if t.Namespaced {
		operation += " from " + t.namespace + " namespace"
	}
	fmt.Fprintf(d.Out, "%s %q %s\n", kind, t.name, d.dryRun.mark(operation))
}

// await waits until the deleted objects are gone, or others of the same name
// have taken their places.
func (d *deleting) await(ctx context.Context, going []victim) error {
	if !d.wait || d.dryRun != dryRunNone {
		return nil
	}
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	for _, v := range going {
		err := d.untilGone(ctx, v.target, v.uid)
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("timed out waiting for the condition on %s/%s", v.Name, v.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errGone = errors.New("gone")

// untilGone waits until an object is gone. An empty uid stands for any.
func (c *cli) untilGone(ctx context.Context, t target, uid types.UID) error {
	client, err := c.server()
	if err != nil {
		return err
	}
	one := rest.FieldSelector("metadata.name=" + t.name)
	found, err := list(ctx, t.in(client), 0, one)
	if apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) {
		return nil // may delete, but not look: nothing to wait with
	}
	if err != nil {
		return err
	}
	if len(found.Items) == 0 || uid != "" && found.Items[0].GetUID() != uid {
		return nil
	}
	err = c.changes(ctx, t, found.GetResourceVersion(), []rest.Option{one}, func(event rest.Event) error {
		object, err := decode(event.Object)
		if err != nil {
			return err
		}
		if event.Type == string(watch.Deleted) || uid != "" && object.GetUID() != uid {
			return errGone
		}
		return nil
	})
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// splitName takes TYPE/NAME apart.
func splitName(arg string) (name string, ok bool) {
	for i := range arg {
		if arg[i] == '/' {
			return arg[i+1:], true
		}
	}
	return "", false
}

// inSource adds the file an object came from to an error about it.
func inSource(err error, doing, source string) error {
	if err == nil || source == "" {
		return err
	}
	if _, told := err.(*sourceError); told { //nolint:errorlint // only what is told at the top
		return err
	}
	return &sourceError{doing: doing, source: source, err: err}
}
