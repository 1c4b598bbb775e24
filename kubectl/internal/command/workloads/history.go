package workloads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/doctor"
	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/rollout"
	"kctl/kubectl/internal/threeway"
	"kctl/proto/rest"
)

// untilRolledOut follows an object until its rollout is done.
func (r *rolloutOptions) untilRolledOut(ctx context.Context, t lookup.Target, timeout time.Duration,
	show func(*unstructured.Unstructured) (bool, error)) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	err := lookup.Follow(ctx, r.Sender.CLI, t, show)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("timed out waiting for the condition")
	}
	return err
}

// warnUnheard tells the user if no controller takes an object up, unless the function
// that it returns is called before.
func (r *rolloutOptions) warnUnheard(object *unstructured.Unstructured, unheard *atomic.Bool) func() {
	return r.Sender.Later(doctor.Patience, func() {
		if unheard.Load() {
			r.Sender.Warn("%s", doctor.UnheardText(object))
		}
	})
}

// observation is how long an object's controller gets to observe its last change.
// Without a controller there is only what is recorded.
const observation = 2 * time.Second

// waitObserved waits until an object's controller has seen its last change and recorded
// the revision. Without that, a command right after a change would miss the last
// revision, and an undo would go back too far.
func (r *rolloutOptions) waitObserved(ctx context.Context, t lookup.Target, object *unstructured.Unstructured) *unstructured.Unstructured {
	seen := func(now *unstructured.Unstructured) (bool, error) {
		object = now
		generation, _, err := unstructured.NestedInt64(now.Object, "status", "observedGeneration")
		return generation >= now.GetGeneration(), err
	}
	if done, err := seen(object); done || err != nil {
		return object
	}
	// A user who may not watch, or whose object has no controller, gets what there is.
	_ = r.untilRolledOut(ctx, t, observation, seen)
	return object
}

// revisions are the recorded earlier templates of an object; what names the verb in
// kubectl's error for kinds that have none.
func (r *rolloutOptions) revisions(ctx context.Context, t lookup.Target, object *unstructured.Unstructured,
	purpose string) ([]rollout.Revision, error) {
	kind, ok := rollout.Keeper(t.Kind)
	if !ok {
		return nil, fmt.Errorf("no %s has been implemented for %q", purpose, t.Kind)
	}
	discovery, err := r.Discovery()
	if err != nil {
		return nil, err
	}
	keeper, err := discovery.Named(ctx, kind)
	if err != nil {
		return nil, err
	}
	client, err := r.Server()
	if err != nil {
		return nil, err
	}
	object = r.waitObserved(ctx, t, object)
	labels, err := lookup.SelectorOf(object)
	if err != nil {
		return nil, err
	}
	found, err := lookup.List(ctx, client.Resource(keeper.Resource, t.Namespace), lookup.ChunkSize, rest.LabelSelector(labels))
	if err != nil {
		return nil, err
	}
	return rollout.Revisions(object, found.Items)
}

func newRolloutHistory(c *frame.CLI) *cobra.Command {
	r := newRolling(c)
	var revision int64
	cmd := &cobra.Command{
		Use: "history (TYPE NAME | TYPE/NAME)", Short: "View rollout history",
		Example: "  kctl rollout history deployment/web\n  kctl rollout history deployment/web --revision=2",
		RunE: func(cmd *cobra.Command, args []string) error {
			if revision < 0 {
				return fmt.Errorf("revision must be a positive integer: %v", revision)
			}
			if r.Chosen() { // what can't be printed is refused where nothing is to be printed, too
				if _, err := printer.New(r.Options); err != nil {
					return err
				}
			}
			return r.run(cmd, args, func(t lookup.Target, object *unstructured.Unstructured) error {
				revisions, err := r.revisions(cmd.Context(), t, object, "history viewer")
				if err != nil {
					return err
				}
				return r.printHistory(t, object, revisions, revision)
			})
		},
	}
	r.add(cmd)
	r.Printing.Add(cmd.Flags())
	cmd.Flags().Int64Var(&revision, "revision", 0, "See the details, including podTemplate of the revision specified")
	return cmd
}

func (r *rolloutOptions) printHistory(t lookup.Target, object *unstructured.Unstructured, revisions []rollout.Revision,
	chosen int64) error {
	if r.Output == "" && r.Template != "" {
		return r.Print(&r.Printing, "", object) // as kubectl has it: a template alone is of what has the history
	}
	name := printer.ObjectName(t.GVK(), t.ObjectName)
	if r.Chosen() && chosen == 0 {
		for _, revision := range revisions {
			if err := r.Print(&r.Printing, "", revision.Object); err != nil {
				return err
			}
		}
		return nil
	}
	if chosen > 0 {
		for _, revision := range revisions {
			if revision.Number == chosen {
				if r.Chosen() {
					return r.Print(&r.Printing, "", revision.Object)
				}
				fmt.Fprintf(r.Out, "%s with revision #%d\n", name, chosen)
				if err := rollout.PrintTemplate(r.Out, revision); err != nil {
					return err
				}
				_, err := fmt.Fprintln(r.Out)
				return err
			}
		}
		if len(revisions) > 0 || r.Chosen() {
			return errors.New("unable to find the specified revision")
		}
		fmt.Fprintf(r.Out, "%s with revision #%d\n", name, chosen)
	} else {
		fmt.Fprintf(r.Out, "%s \n", name)
	}
	return r.printRevisions(revisions)
}

// printRevisions lists the revisions, each with why somebody made it.
func (r *rolloutOptions) printRevisions(revisions []rollout.Revision) error {
	if len(revisions) == 0 {
		_, err := fmt.Fprintln(r.Out, "No rollout history found.")
		return err
	}
	out := &printer.Columns{Padding: 2} // as kubectl's
	out.Add("REVISION", "CHANGE-CAUSE")
	for _, revision := range revisions {
		out.Add(fmt.Sprint(revision.Number), cmp.Or(revision.Cause, "<none>"))
	}
	if err := out.Flush(r.Out); err != nil {
		return err
	}
	_, err := fmt.Fprintln(r.Out)
	return err
}

func newRolloutUndo(c *frame.CLI) *cobra.Command {
	r := newRolling(c)
	var to int64
	cmd := &cobra.Command{
		Use: "undo (TYPE NAME | TYPE/NAME)", Short: "Undo a previous rollout",
		Example: "  kctl rollout undo deployment/web\n  kctl rollout undo deployment/web --to-revision=3",
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(cmd, args, func(t lookup.Target, object *unstructured.Unstructured) error {
				return r.undo(cmd.Context(), t, object, to)
			})
		},
	}
	r.add(cmd)
	r.Printing.AddChecked(cmd)
	r.DryRun.Add(cmd)
	cmd.Flags().Int64Var(&to, "to-revision", 0, "The revision to rollback to. Default to 0 (last revision).")
	r.Manager = send.FieldManager
	return cmd
}

// undo replaces the current template with an earlier one.
func (r *rolloutOptions) undo(ctx context.Context, t lookup.Target, object *unstructured.Unstructured, to int64) error {
	if _, applied := object.GetAnnotations()[threeway.LastApplied]; applied {
		r.Warn("resource %s/%s was previously managed with '%[4]s apply'. Rolling back will not update the %[3]s annotation, which may cause "+
			"unexpected behavior on future '%[4]s apply' operations. Consider using '%[4]s apply' with your previous configuration file instead.",
			t.Name, t.ObjectName, threeway.LastApplied, r.Name)
	}
	revisions, err := r.revisions(ctx, t, object, "rollbacker")
	if err != nil {
		return err
	}
	chosen, err := rollout.Choose(t.Kind, t.ObjectName, revisions, to)
	if err != nil {
		return err
	}
	if r.DryRun == frame.DryRunClient { // of what is paused or so already, too, as in kubectl
		preview, err := rollout.Preview(t.Kind, chosen)
		if err != nil {
			return err
		}
		return r.Print(&r.Printing, r.DryRun.Mark(preview), object)
	}
	if paused, _, _ := unstructured.NestedBool(object.Object, "spec", "paused"); paused {
		return fmt.Errorf("you cannot rollback a paused %s; resume it first with '%s rollout resume' and try again", t.Singular, r.Name)
	}
	if chosen.Current {
		return r.Print(&r.Printing, fmt.Sprintf("skipped rollback (current template already matches revision %d)", chosen.Number), object)
	}
	patch, kind := chosen.Patch, types.StrategicMergePatchType
	if chosen.Replace {
		kind = types.JSONPatchType
	}
	changed, err := r.Patch(ctx, t, kind, patch)
	if apierrors.IsInvalid(err) {
		return fmt.Errorf("failed restoring revision %d: %w", chosen.Number, err)
	}
	if err != nil {
		return err
	}
	return r.Print(&r.Printing, r.DryRun.Mark("rolled back"), changed)
}
