package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/rollout"
	"kctl/proto/rest"
)

// untilRolledOut follows an object until its rollout is done.
func (r *rolling) untilRolledOut(ctx context.Context, t target, timeout time.Duration, show func(*unstructured.Unstructured) (bool, error)) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	err := r.follow(ctx, t, show)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("timed out waiting for the condition")
	}
	return err
}

// revisions are what is remembered of an object's earlier templates.
func (r *rolling) revisions(ctx context.Context, t target, object *unstructured.Unstructured) ([]rollout.Revision, error) {
	kind, ok := rollout.Keeper(t.Kind)
	if !ok {
		return nil, fmt.Errorf("no history viewer has been implemented for %q", t.Kind)
	}
	discovery, err := r.discovery()
	if err != nil {
		return nil, err
	}
	keeper, err := discovery.Named(ctx, kind)
	if err != nil {
		return nil, err
	}
	client, err := r.server()
	if err != nil {
		return nil, err
	}
	labels, err := selectorOf(object)
	if err != nil {
		return nil, err
	}
	found, err := list(ctx, client.Resource(keeper.Resource, t.namespace), chunk, rest.LabelSelector(labels))
	if err != nil {
		return nil, err
	}
	return rollout.Revisions(object, found.Items)
}

// selectorOf is the label selector by which an object finds its pods.
func selectorOf(object *unstructured.Unstructured) (string, error) {
	content, ok, err := unstructured.NestedMap(object.Object, "spec", "selector")
	if err != nil || !ok {
		return "", fmt.Errorf("%s %s has no selector", object.GetKind(), object.GetName())
	}
	if _, structured := content["matchLabels"]; !structured && content["matchExpressions"] == nil {
		content = map[string]any{"matchLabels": content} // services and replication controllers
	}
	selector := &metav1.LabelSelector{}
	if err := typed(&unstructured.Unstructured{Object: content}, selector); err != nil {
		return "", err
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return "", fmt.Errorf("the selector of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return parsed.String(), nil
}

func newRolloutHistory(c *cli) *cobra.Command {
	r := &rolling{sending: sending{cli: c}}
	var revision int64
	cmd := &cobra.Command{
		Use: "history (TYPE NAME | TYPE/NAME)", Short: "View rollout history", Example: "  kctl rollout history deployment/web\n  kctl rollout history deployment/web --revision=2",
		RunE: func(cmd *cobra.Command, args []string) error {
			if revision < 0 {
				return fmt.Errorf("revision must be a positive integer: %v", revision)
			}
			return r.run(cmd, args, func(t target, object *unstructured.Unstructured) error {
				revisions, err := r.revisions(cmd.Context(), t, object)
				if err != nil {
					return err
				}
				return r.printHistory(t, revisions, revision)
			})
		},
	}
	r.add(cmd)
	r.output.add(cmd.Flags())
	cmd.Flags().Int64Var(&revision, "revision", 0, "See the details, including podTemplate of the revision specified")
	return cmd
}

func (r *rolling) printHistory(t target, revisions []rollout.Revision, chosen int64) error {
	name := printer.ObjectName(t.GVK(), t.name)
	if r.Output != "" && chosen == 0 {
		for _, revision := range revisions {
			if err := r.print(&r.output, "", revision.Object); err != nil {
				return err
			}
		}
		return nil
	}
	if chosen > 0 {
		for _, revision := range revisions {
			if revision.Number == chosen {
				if r.Output != "" {
					return r.print(&r.output, "", revision.Object)
				}
				fmt.Fprintf(r.Out, "%s with revision #%d\n", name, chosen)
				return rollout.PrintTemplate(r.Out, revision)
			}
		}
		return fmt.Errorf("unable to find the specified revision")
	}
	fmt.Fprintf(r.Out, "%s \n", name)
	if len(revisions) == 0 {
		_, err := fmt.Fprintln(r.Out, "No rollout history found.")
		return err
	}
	out := &printer.Columns{}
	out.Add("REVISION", "CHANGE-CAUSE")
	for _, revision := range revisions {
		cause := revision.Cause
		if cause == "" {
			cause = "<none>"
		}
		out.Add(fmt.Sprint(revision.Number), cause)
	}
	if err := out.Flush(r.Out); err != nil {
		return err
	}
	_, err := fmt.Fprintln(r.Out)
	return err
}

func newRolloutUndo(c *cli) *cobra.Command {
	r := &rolling{sending: sending{cli: c}}
	var to int64
	cmd := &cobra.Command{
		Use: "undo (TYPE NAME | TYPE/NAME)", Short: "Undo a previous rollout", Example: "  kctl rollout undo deployment/web\n  kctl rollout undo deployment/web --to-revision=3",
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(cmd, args, func(t target, object *unstructured.Unstructured) error {
				return r.undo(cmd.Context(), t, object, to)
			})
		},
	}
	r.add(cmd)
	r.output.add(cmd.Flags())
	r.dryRun.add(cmd)
	cmd.Flags().Int64Var(&to, "to-revision", 0, "The revision to rollback to. Default to 0 (last revision).")
	r.manager = fieldManager
	return cmd
}

// undo puts an earlier template in place of the present one.
func (r *rolling) undo(ctx context.Context, t target, object *unstructured.Unstructured, to int64) error {
	revisions, err := r.revisions(ctx, t, object)
	if err != nil {
		return err
	}
	if paused, _, _ := unstructured.NestedBool(object.Object, "spec", "paused"); paused {
		return fmt.Errorf("you cannot rollback a paused %s; resume it first with 'kctl rollout resume' and try again", t.Singular)
	}
	chosen, err := rollout.Choose(t.Kind, t.name, revisions, to)
	if err != nil {
		return err
	}
	if chosen.Current {
		return r.print(&r.output, fmt.Sprintf("skipped rollback (current template already matches revision %d)", chosen.Number), object)
	}
	if r.dryRun == dryRunClient {
		return rollout.PrintTemplate(r.Out, chosen)
	}
	patch, kind := chosen.Patch, types.StrategicMergePatchType
	if chosen.Replace {
		kind = types.JSONPatchType
	}
	changed, err := r.sendPatch(ctx, t, kind, patch)
	if apierrors.IsInvalid(err) {
		return fmt.Errorf("failed restoring revision %d: %w", chosen.Number, err)
	}
	if err != nil {
		return err
	}
	return r.print(&r.output, r.dryRun.mark("rolled back"), changed)
}
