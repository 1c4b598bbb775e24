package change

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

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/printer"
	"kctl/proto/rest"
)

// deleteOptions has the flags of one `kctl delete`.
type deleteOptions struct {
	*frame.CLI
	lookup.Selection
	dryRun         frame.DryRun
	grace          int64
	force, now     bool
	wait           bool
	timeout        time.Duration
	cascade        send.Cascade
	ignoreNotFound bool
	nameOnly       string
	interactive    bool
	raw            frame.Raw
}

func newDelete(c *frame.CLI) *cobra.Command {
	d := &deleteOptions{CLI: c, raw: frame.Raw{CLI: c}}
	cmd := &cobra.Command{
		Use:        "delete (TYPE NAME... | TYPE/NAME... | TYPE -l SELECTOR | TYPE --all | -f FILE)",
		Short:      "Delete resources by file names, stdin, resources and names, or by resources and label selector",
		Example:    "  kctl delete pod web\n  kctl delete -f pod.yaml --now\n  kctl delete pods -l run=web --wait=false",
		SuggestFor: []string{"rm", "remove"},
		RunE:       func(cmd *cobra.Command, args []string) error { return d.run(cmd, args) },
	}
	fs := cmd.Flags()
	d.AddFiles(fs, "containing the resource to delete.")
	d.AddLabels(fs)
	d.AddFields(fs)
	d.AddAllNamespaces(fs)
	d.dryRun.Add(cmd)
	d.AllSelects = true
	fs.BoolVar(&d.All, "all", false, "Delete all resources, in the namespace of the specified resource types.")
	fs.Int64Var(&d.grace, "grace-period", -1,
		"Period of time in seconds given to the resource to terminate gracefully. Ignored if negative. Can only be "+
			"set to 0 when --force is true.")
	fs.BoolVar(&d.force, "force", false, "If true, immediately remove resources from API and bypass graceful deletion.")
	fs.BoolVar(&d.now, "now", false, "If true, resources are signaled for immediate shutdown (same as --grace-period=1).")
	fs.BoolVar(&d.wait, "wait", true, "If true, wait for resources to be gone before returning. This waits for finalizers.")
	fs.DurationVar(&d.timeout, "timeout", 0,
		"The length of time to wait before giving up on a delete, zero means determine a timeout from the size of the object")
	d.cascade.Add(fs, send.CascadeUsage)
	d.raw.Add(cmd, http.MethodDelete, "DELETE to")
	fs.BoolVar(&d.ignoreNotFound, "ignore-not-found", false,
		`Treat "resource not found" as a successful delete. Defaults to "true" when --all is specified.`)
	fs.BoolVarP(&d.interactive, "interactive", "i", false, "If true, delete resource only when user confirms.")
	fs.StringVarP(&d.nameOnly, "output", "o", "", "Output mode. Use \"-o name\" for shorter output (resource/name).")
	return cmd
}

func (d *deleteOptions) check(args []string) error {
	if d.now {
		if d.grace >= 0 {
			return errors.New("--now and --grace-period cannot be specified together")
		}
		d.grace = 1
	}
	if d.force && d.grace > 0 {
		return errors.New("--force and --grace-period greater than 0 cannot be specified together")
	}
	if d.force {
		d.grace = 0
	}
	if d.grace == 0 && !d.force {
		// As kubectl: without --force, wait for the shortest grace there is.
		d.grace = 1
	}
	if err := d.cascade.Settle(d.Err); err != nil {
		return err
	}
	if d.nameOnly != "" && d.nameOnly != "name" {
		return fmt.Errorf("unexpected -o output mode: %v. We only support '-o name'", d.nameOnly)
	}
	if d.All && d.Labels+d.Fields != "" {
		return errors.New("setting 'all' parameter but found a non empty selector.") //nolint:staticcheck // kubectl's words
	}
	if d.All {
		d.ignoreNotFound = true
	}
	if len(args) == 1 && !d.FromFiles() && !d.All && d.Labels == "" && d.Fields == "" {
		if !strings.Contains(args[0], "/") {
			return lookup.ErrNoName
		}
	}
	return nil
}

func (d *deleteOptions) run(cmd *cobra.Command, args []string) error {
	if d.raw.URI != "" {
		if len(args) > 0 {
			return errors.New("arguments may not be passed when --raw is specified")
		}
		return d.raw.Run(cmd, d.Files)
	}
	if err := d.check(args); err != nil {
		return err
	}
	targets, err := lookup.Targets(cmd.Context(), d.CLI, &d.Selection, args, "")
	if len(targets) == 0 && err != nil {
		return err
	}
	chosen, failed := d.findObjects(cmd.Context(), targets)
	failed = append(failed, err)
	if err := errors.Join(failed...); d.interactive && err != nil {
		return err // nobody can agree to an incomplete list
	}
	if d.interactive && len(chosen) > 0 {
		if agreed, err := d.confirm(chosen); !agreed {
			return err
		}
	}
	if d.force && d.dryRun == frame.DryRunNone {
		d.Warn("Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to " +
			"run on the cluster indefinitely.")
	}
	going, refused, err := d.deleteAll(cmd.Context(), chosen)
	if err != nil {
		return err
	}
	failed = append(failed, refused...)
	if len(chosen) == 0 && errors.Join(failed...) == nil {
		fmt.Fprintln(d.Out, "No resources found")
	}
	if err := d.waitGone(cmd.Context(), going); err != nil {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// deleteAll deletes one object after the other. It returns those that are going, and why
// others are not.
func (d *deleteOptions) deleteAll(ctx context.Context, chosen []lookup.Target) (going []deletedObject, refused []error, err error) {
	elsewhere, err := d.beyondNamespace()
	if err != nil {
		return nil, nil, err
	}
	for _, t := range chosen {
		if elsewhere && !t.Namespaced {
			d.Warn("deleting cluster-scoped resources, not scoped to the provided namespace")
			elsewhere = false
		}
		uid, err := d.deleteObject(ctx, t)
		if err == nil {
			going = append(going, deletedObject{t, uid})
		} else if !(d.ignoreNotFound && apierrors.IsNotFound(err)) {
			refused = append(refused, frame.InSource(err, "deleting", t.Source))
		}
	}
	return going, refused, nil
}

// beyondNamespace tells whether to warn that objects outside any namespace are deleted
// although a namespace was named.
func (d *deleteOptions) beyondNamespace() (bool, error) {
	loaded, err := d.Kubeconfig()
	return err == nil && loaded.Chosen && !d.AllNamespaces, err
}

// findObjects finds the targets' objects, and returns an error for each that it
// did not find.
func (d *deleteOptions) findObjects(ctx context.Context, targets []lookup.Target) (chosen []lookup.Target, failed []error) {
	for _, t := range targets {
		names, err := d.expandTarget(ctx, t)
		if err != nil {
			failed = append(failed, err)
		}
		chosen = append(chosen, names...)
	}
	return chosen, failed
}

// confirm asks whether to delete them. Only y means yes.
func (d *deleteOptions) confirm(chosen []lookup.Target) (bool, error) {
	fmt.Fprintf(d.Out, "You are about to delete the following %d resource(s):\n", len(chosen))
	for _, t := range chosen {
		fmt.Fprintln(d.Out, printer.ObjectName(t.GVK(), t.ObjectName))
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

// expandTarget returns a target's objects.
func (d *deleteOptions) expandTarget(ctx context.Context, t lookup.Target) ([]lookup.Target, error) {
	switch {
	case t.Object != nil && !lookup.Matches(d.Labels, t.Object):
		return nil, nil
	case t.ObjectName != "":
		return []lookup.Target{t}, nil
	}
	found, err := lookup.Fetch(ctx, d.CLI, t, &d.Selection)
	if err != nil {
		return nil, err
	}
	var all []lookup.Target
	for i := range found {
		named := t
		named.ObjectName, named.Namespace = found[i].GetName(), found[i].GetNamespace()
		all = append(all, named)
	}
	return all, nil
}

// deletedObject is an object that is being deleted.
type deletedObject struct {
	lookup.Target
	uid types.UID
}

func (d *deleteOptions) deleteObject(ctx context.Context, t lookup.Target) (types.UID, error) {
	client, err := d.Server()
	if err != nil {
		return "", err
	}
	var uid types.UID
	if d.dryRun != frame.DryRunClient {
		if uid, err = removeObject(ctx, t.In(client), t.ObjectName, d.options()); err != nil {
			return "", err
		}
	}
	d.printDeleted(t)
	return uid, nil
}

func removeObject(ctx context.Context, from rest.Resource, name string, options *metav1.DeleteOptions) (types.UID, error) {
	var answer []byte
	if err := from.Delete(ctx, name, options, &answer); err != nil {
		return "", err
	}
	object, err := lookup.Decode(answer)
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

func (d *deleteOptions) options() *metav1.DeleteOptions {
	options := &metav1.DeleteOptions{PropagationPolicy: d.cascade.Propagation()}
	options.APIVersion, options.Kind = "v1", "DeleteOptions"
	if d.grace >= 0 {
		options.GracePeriodSeconds = &d.grace
	}
	if d.dryRun == frame.DryRunServer {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options
}

func (d *deleteOptions) printDeleted(t lookup.Target) {
	if d.nameOnly != "" {
		fmt.Fprintln(d.Out, printer.ObjectName(t.GVK(), t.ObjectName))
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
		operation += " from " + t.Namespace + " namespace"
	}
	fmt.Fprintf(d.Out, "%s %q %s\n", kind, t.ObjectName, d.dryRun.Mark(operation))
}

// waitGone waits until the deleted objects are gone, or others of the same name
// have replaced them.
func (d *deleteOptions) waitGone(ctx context.Context, going []deletedObject) error {
	if !d.wait || d.dryRun != frame.DryRunNone {
		return nil
	}
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	for _, v := range going {
		err := lookup.UntilGone(ctx, d.CLI, v.Target, v.uid)
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("timed out waiting for the condition on %s/%s", v.Name, v.ObjectName)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
