package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// drainOptions has the flags of one `kctl drain`.
type drainOptions struct {
	send.Sender
	lookup.Selection
	podSelector                             string
	force, ignoreDaemonSets, deleteEmptyDir bool
	disableEviction                         bool
	grace                                   int64
	timeout                                 time.Duration
	skipWait                                int64
	saying                                  sync.Mutex
}

func newDrain(c *frame.CLI) *cobra.Command {
	d := &drainOptions{Sender: send.Sender{CLI: c, Manager: send.FieldManager}}
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Drain node in preparation for maintenance",
		Long: "Drain node in preparation for maintenance.\n\n" +
			"The node is marked unschedulable, and its pods are evicted, which disruption budgets may put off.",
		Example: "  kctl drain node-1 --ignore-daemonsets\n  kctl drain node-1 --force --grace-period=60",
		RunE:    func(cmd *cobra.Command, args []string) error { return d.run(cmd, args) },
	}
	fs := cmd.Flags()
	d.AddLabels(fs)
	d.AddChunkSize(fs)
	d.DryRun.Add(cmd)
	fs.StringVar(&d.podSelector, "pod-selector", "", "Label selector to filter pods on the node")
	fs.BoolVar(&d.force, "force", false, "Continue even if there are pods that do not declare a controller.")
	fs.BoolVar(&d.ignoreDaemonSets, "ignore-daemonsets", false, "Ignore DaemonSet-managed pods.")
	fs.BoolVar(&d.deleteEmptyDir, "delete-emptydir-data", false,
		"Continue even if there are pods using emptyDir (local data that will be deleted when the node is drained).")
	fs.BoolVar(&d.disableEviction, "disable-eviction", false,
		"Force drain to use delete, even if eviction is supported. This will bypass checking PodDisruptionBudgets, use with caution.")
	fs.Int64Var(&d.grace, "grace-period", -1,
		"Period of time in seconds given to each pod to terminate gracefully. If negative, the default value specified in the pod will be used.")
	fs.DurationVar(&d.timeout, "timeout", 0, "The length of time to wait before giving up, zero means infinite")
	fs.Int64Var(&d.skipWait, "skip-wait-for-delete-timeout", 0,
		"If pod DeletionTimestamp older than N seconds, skip waiting for the pod. Seconds must be greater than 0 to skip.")
	return cmd
}

func (d *drainOptions) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 && d.Labels == "" {
		return frame.UsageError(cmd, "USAGE: drain NODE [flags]")
	}
	if len(args) > 0 && d.Labels != "" {
		return errors.New("cannot specify both a node name and a --selector option")
	}
	if _, err := labels.Parse(d.podSelector); err != nil { // before a node is cordoned
		return errors.New("--pod-selector=<pod_selector> must be a valid label selector")
	}
	ctx := cmd.Context()
	targets, err := lookup.Targets(ctx, d.Sender.CLI, &d.Selection, args, core.Nodes.Name)
	if err != nil {
		return err
	}
	nodes, err := d.cordon(ctx, targets)
	if err != nil {
		return err
	}
	return d.drainAll(ctx, nodes)
}

// cordon closes all of the nodes before the first is drained: pods that leave one must not
// come to the next. A node that can't be closed is named, and is drained all the same.
func (d *drainOptions) cordon(ctx context.Context, targets []lookup.Target) (nodes []string, err error) {
	found, err := fetchAll(ctx, d.Sender.CLI, targets, &d.Selection)
	if err != nil {
		return nil, err
	}
	closing := &cordonOptions{Sender: &d.Sender, verb: "cordon", unschedulable: true}
	for i := range found {
		name := found[i].GetName()
		nodes = append(nodes, name)
		err := closing.schedule(ctx, targets[0], &found[i])
		if ctx.Err() != nil {
			return nil, cmp.Or(err, ctx.Err())
		}
		if err != nil {
			if err := d.say(d.Err, "error: unable to cordon node %q: %v", name, err); err != nil {
				return nil, err
			}
		}
	}
	return nodes, nil
}

// drainAll drains one node after the other. One that can't be drained does not keep the
// others.
func (d *drainOptions) drainAll(ctx context.Context, nodes []string) error {
	var failed []error
	var pending []string
	for _, node := range nodes {
		err := d.drain(ctx, node)
		if ctx.Err() != nil {
			return cmp.Or(err, ctx.Err())
		}
		line, to := "node/"+node+" "+d.DryRun.Mark("drained"), d.Out
		if err != nil {
			failed, pending = append(failed, err), append(pending, " "+node)
			line, to = fmt.Sprintf("error: unable to drain node %q due to error: %v, continuing command...", node, err), d.Err
		}
		if err := d.say(to, "%s", line); err != nil {
			return err
		}
	}
	if len(failed) == 0 {
		return nil
	}
	lines := append([]string{"There are pending nodes to be drained:"}, pending...)
	for _, err := range utilerrors.Flatten(utilerrors.NewAggregate(failed)).Errors() {
		lines = append(lines, err.Error())
	}
	if err := d.say(d.Err, "%s", strings.Join(lines, "\n")); err != nil {
		return err
	}
	return frame.ExitCode(frame.ExitError)
}

func (d *drainOptions) drain(ctx context.Context, node string) error {
	leaving, err := d.podsToEvict(ctx, node)
	if err != nil {
		return err
	}
	within := ctx
	if d.timeout > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	failed := make([]error, len(leaving))
	var all sync.WaitGroup
	for i := range leaving { // side by side: one that a budget keeps may wait for the others to move
		all.Go(func() { failed[i] = d.moveOut(within, &leaving[i]) })
	}
	all.Wait()
	why := utilerrors.NewAggregate(failed)
	if why == nil || ctx.Err() != nil {
		return why
	}
	if err := d.sayPending(ctx, node, leaving, why); err != nil {
		return errors.Join(why, err)
	}
	return why
}

// sayPending names the pods that were to leave and are there still.
func (d *drainOptions) sayPending(ctx context.Context, node string, leaving []core.Pod, why error) error {
	found, err := d.podsOn(ctx, node)
	if err != nil {
		return fmt.Errorf("list the pods that are left: %w", err)
	}
	left := slices.DeleteFunc(found, func(pod core.Pod) bool {
		return !slices.ContainsFunc(leaving, func(one core.Pod) bool { return one.UID == pod.UID })
	})
	if len(left) == 0 {
		return nil
	}
	text := fmt.Sprintf("There are pending pods in node %q when an error occurred: %v", node, why)
	for i := range left {
		text += "\npod/" + left[i].Name
	}
	return d.say(d.Err, "%s", text)
}

func (d *drainOptions) podsOn(ctx context.Context, node string) ([]core.Pod, error) {
	client, err := d.Server()
	if err != nil {
		return nil, err
	}
	return lookup.TypedList[core.Pod](ctx, client.Resource(core.Pods, ""), d.Chunk(), rest.FieldSelector("spec.nodeName="+node),
		rest.LabelSelector(d.podSelector))
}

// say writes a line for one of the pods that are evicted side by side.
func (d *drainOptions) say(to io.Writer, format string, args ...any) error {
	d.saying.Lock()
	defer d.saying.Unlock()
	_, err := fmt.Fprintf(printer.VisibleTo(to), format+"\n", args...)
	return err
}
