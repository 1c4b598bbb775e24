package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/printer"
	"kctl/proto/backoff"
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
		Use:     "drain NODE",
		Short:   "Drain node in preparation for maintenance",
		Long:    "Drain node in preparation for maintenance.\n\nThe node is marked unschedulable, and its pods are evicted, which disruption budgets may put off.",
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
	fs.BoolVar(&d.deleteEmptyDir, "delete-emptydir-data", false, "Continue even if there are pods using emptyDir (local data that will be deleted when the node is drained).")
	fs.BoolVar(&d.disableEviction, "disable-eviction", false, "Force drain to use delete, even if eviction is supported. This will bypass checking PodDisruptionBudgets, use with caution.")
	fs.Int64Var(&d.grace, "grace-period", -1, "Period of time in seconds given to each pod to terminate gracefully. If negative, the default value specified in the pod will be used.")
	fs.DurationVar(&d.timeout, "timeout", 0, "The length of time to wait before giving up, zero means infinite")
	fs.Int64Var(&d.skipWait, "skip-wait-for-delete-timeout", 0, "If pod DeletionTimestamp older than N seconds, skip waiting for the pod. Seconds must be greater than 0 to skip.")
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
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	closing := &cordonOptions{Sender: &d.Sender, verb: "cordon", unschedulable: true}
	return lookup.Each(ctx, d.Sender.CLI, targets, &d.Selection, func(t lookup.Target, node *unstructured.Unstructured) error {
		if err := closing.schedule(ctx, t, node); err != nil {
			return err
		}
		if err := d.drain(ctx, t.ObjectName); err != nil {
			return fmt.Errorf("unable to drain node %q due to error: %w, continuing command...\nThere are pending nodes to be drained:\n %s\n%v", t.ObjectName, err, t.ObjectName, err) //nolint:staticcheck // kubectl's words
		}
		_, err := fmt.Fprintf(printer.VisibleTo(d.Out), "node/%s %s\n", t.ObjectName, d.DryRun.Mark("drained"))
		return err
	})
}

func (d *drainOptions) drain(ctx context.Context, node string) error {
	client, err := d.Server()
	if err != nil {
		return err
	}
	found, err := lookup.TypedList[core.Pod](ctx, client.Resource(core.Pods, ""), d.Chunk(), rest.FieldSelector("spec.nodeName="+node), rest.LabelSelector(d.podSelector))
	if err != nil {
		return err
	}
	leaving, err := d.podsToEvict(found)
	if err != nil {
		return err
	}
	failed := make([]error, len(leaving))
	var all sync.WaitGroup
	for i := range leaving { // side by side: one that a budget keeps may wait for the others to move
		all.Go(func() { failed[i] = d.moveOut(ctx, &leaving[i]) })
	}
	all.Wait()
	return utilerrors.NewAggregate(failed)
}

// moveOut evicts a pod and waits until it is gone.
func (d *drainOptions) moveOut(ctx context.Context, pod *core.Pod) error {
	err := d.evict(ctx, pod)
	if err != nil || d.DryRun != frame.DryRunNone {
		return err
	}
	return d.untilEvicted(ctx, pod)
}

// say writes a line for one of the pods that are evicted side by side.
func (d *drainOptions) say(to io.Writer, format string, args ...any) error {
	d.saying.Lock()
	defer d.saying.Unlock()
	_, err := fmt.Fprintf(printer.VisibleTo(to), format+"\n", args...)
	return err
}

// The reasons why a pod keeps a node from being drained, in the order in which
// they are reported.
var reasons = []struct{ is, warn string }{
	{"cannot delete Pods that declare no controller (use --force to override)", "deleting Pods that declare no controller"},
	{"cannot delete Pods with local storage (use --delete-emptydir-data to override)", "deleting Pods with local storage"},
	{"cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)", "ignoring DaemonSet-managed Pods"},
}

const (
	unmanaged = iota
	localStorage
	ofDaemonSet
)

// podsToEvict returns the pods to evict, or an error that says why the node
// can't be drained.
func (d *drainOptions) podsToEvict(pods []core.Pod) ([]core.Pod, error) {
	var leaving []core.Pod
	refused, warned := make([][]string, len(reasons)), make([][]string, len(reasons))
	note := func(to [][]string, reason int, pod *core.Pod) {
		to[reason] = append(to[reason], pod.Namespace+"/"+pod.Name)
	}
	for i := range pods {
		pod := &pods[i]
		controller := metav1.GetControllerOf(pod)
		ended := lookup.Ended(pod)
		switch {
		case pod.Annotations[corev1.MirrorPodAnnotationKey] != "":
			continue
		case controller != nil && controller.Kind == "DaemonSet" && !ended:
			if !d.ignoreDaemonSets {
				note(refused, ofDaemonSet, pod)
			} else {
				note(warned, ofDaemonSet, pod)
			}
			continue
		case controller == nil && !ended:
			if !d.force {
				note(refused, unmanaged, pod)
				continue
			}
			note(warned, unmanaged, pod)
		}
		if usesEmptyDir(pod) && !ended && !d.deleteEmptyDir {
			note(refused, localStorage, pod)
			continue
		}
		leaving = append(leaving, *pod)
	}
	if err := d.conclude(refused, warned); err != nil {
		return nil, err
	}
	return leaving, nil
}

// conclude refuses to go on because of pods, and warns of others, both by reason.
func (d *drainOptions) conclude(refused, warned [][]string) error {
	var problems, warnings []string
	for i := range reasons {
		if len(refused[i]) > 0 {
			sort.Strings(refused[i])
			problems = append(problems, reasons[i].is+": "+strings.Join(refused[i], ", "))
		}
		if len(warned[i]) > 0 {
			warnings = append(warnings, reasons[i].warn+": "+strings.Join(warned[i], ", "))
		}
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, ", "))
	}
	if len(warnings) > 0 {
		d.Warn("%s", strings.Join(warnings, "; "))
	}
	return nil
}

func usesEmptyDir(pod *core.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil })
}

// evictPause is the pause before an eviction that a budget refused is tried
// again.
const evictPause = 5 * time.Second

// evict requests a pod's eviction, again and again while a budget refuses it.
func (d *drainOptions) evict(ctx context.Context, pod *core.Pod) error {
	client, err := d.Server()
	if err != nil {
		return err
	}
	if d.DryRun == frame.DryRunClient {
		return d.say(d.Out, "evicting pod %s/%s (dry run)", pod.Namespace, pod.Name)
	}
	options := &metav1.DeleteOptions{}
	if d.grace >= 0 {
		options.GracePeriodSeconds = &d.grace
	}
	if d.DryRun == frame.DryRunServer {
		options.DryRun = []string{metav1.DryRunAll}
	}
	for {
		if err := d.say(d.Out, "%s", d.DryRun.Mark("evicting pod "+pod.Namespace+"/"+pod.Name)); err != nil {
			return err
		}
		pods := client.Resource(core.Pods, pod.Namespace)
		if d.disableEviction {
			err = pods.Delete(ctx, pod.Name, options, nil)
		} else {
			eviction := &policyv1.Eviction{DeleteOptions: options}
			eviction.APIVersion, eviction.Kind, eviction.Name, eviction.Namespace = "policy/v1", "Eviction", pod.Name, pod.Namespace
			err = pods.Create(ctx, eviction, nil, rest.Sub("eviction"))
		}
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return d.outOfTime(pod)
		case !apierrors.IsTooManyRequests(err):
			return fmt.Errorf("error when evicting pods/%q -n %q: %w", pod.Name, pod.Namespace, err)
		}
		if err := d.say(d.Err, "error when evicting pods/%q -n %q (will retry after 5s): %v", pod.Name, pod.Namespace, err); err != nil {
			return err
		}
		if err := backoff.Sleep(ctx, d.Clock, evictPause); err != nil {
			return d.outOfTime(pod)
		}
	}
}

func (d *drainOptions) outOfTime(pod *core.Pod) error {
	return fmt.Errorf("error when evicting pods/%q -n %q: global timeout reached: %v", pod.Name, pod.Namespace, d.timeout)
}

// overduePause is how long it takes until a pod is looked at again.
const overduePause = time.Second

// untilOverdue waits until a pod is gone. If it has been terminating for longer
// than --skip-wait-for-delete-timeout, it is skipped.
func (d *drainOptions) untilOverdue(ctx context.Context, pod *core.Pod) (skipped bool, err error) {
	client, err := d.Server()
	if err != nil {
		return false, err
	}
	for {
		now := &core.Pod{}
		err := client.Resource(core.Pods, pod.Namespace).Get(ctx, pod.Name, now)
		switch {
		case apierrors.IsNotFound(err), err == nil && now.UID != pod.UID:
			return false, nil
		case err != nil:
			return false, err
		case now.DeletionTimestamp != nil && d.Clock.Since(now.DeletionTimestamp.Time) > time.Duration(d.skipWait)*time.Second:
			return true, d.say(d.Out, "pod %q has DeletionTimestamp older than %v seconds, skipping", pod.Name, d.skipWait)
		}
		if err := backoff.Sleep(ctx, d.Clock, overduePause); err != nil {
			return false, fmt.Errorf("error when waiting for pod %q in namespace %q to terminate: %w", pod.Name, pod.Namespace, err)
		}
	}
}

func (d *drainOptions) untilEvicted(ctx context.Context, pod *core.Pod) error {
	if d.skipWait > 0 {
		if skipped, err := d.untilOverdue(ctx, pod); skipped || err != nil {
			return err
		}
	}
	t := lookup.Target{Resource: discover.Resource{Resource: core.Pods}, Namespace: pod.Namespace, ObjectName: pod.Name}
	if err := lookup.UntilGone(ctx, d.Sender.CLI, t, pod.UID); err != nil {
		return fmt.Errorf("error when waiting for pod %q in namespace %q to terminate: %w", pod.Name, pod.Namespace, err)
	}
	done := "evicted"
	if d.disableEviction {
		done = "deleted"
	}
	return d.say(d.Out, "pod/%s %s", pod.Name, done)
}
