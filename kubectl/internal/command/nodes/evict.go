package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/discover"
	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// moveOut evicts a pod and waits until it is gone.
func (d *drainOptions) moveOut(ctx context.Context, pod *core.Pod) error {
	err := d.evict(ctx, pod)
	if err != nil || d.DryRun != frame.DryRunNone {
		return err
	}
	return d.untilEvicted(ctx, pod)
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
		case apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil // its namespace refuses evictions, but takes it away by itself
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return d.outOfTime(pod)
		case !apierrors.IsTooManyRequests(err):
			return fmt.Errorf("error when evicting pods/%q -n %q: %w", pod.Name, pod.Namespace, err)
		}
		if err := d.say(d.Err, "error when evicting pods/%q -n %q (will retry after 5s): %v", pod.Name, pod.Namespace, err); err != nil {
			return err
		}
		if err := backoff.Sleep(ctx, d.Clock, evictPause); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return d.outOfTime(pod)
			}
			return err
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
		case d.overdue(now):
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
