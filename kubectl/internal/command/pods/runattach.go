package pods

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/progress"
	"kctl/proto/core"
)

// cleanupTime is what removing the pod may take after the command was
// interrupted.
const cleanupTime = 10 * time.Second

// attachAndExit attaches the user to the pod once it runs, and ends with the
// container's exit code. What was created goes with --rm.
func (r *runOptions) attachAndExit(ctx context.Context, pod *core.Pod, created []core.Object) error {
	if r.remove {
		defer r.removeAll(ctx, created)
	}
	waited, err := r.untilStarted(ctx, pod)
	if err != nil {
		return err
	}
	if core.Ended(waited.Status.Phase) {
		// Too late to attach: its output is in the log.
		if err := showLog(ctx, r.CLI, r.Out, waited, waited.Spec.Containers[0].Name); err != nil {
			return err
		}
	} else {
		j := &attachOptions{CLI: r.CLI, stdin: r.stdin, tty: r.tty, quiet: r.quiet, detach: r.detach, logFirst: true, removed: r.remove}
		err := j.attachOrLog(ctx, waited, waited.Spec.Containers[0].Name)
		if err != nil || j.left { // what goes on is not waited for
			return err
		}
		if r.goesOn(waited) {
			j.sayResume(waited, waited.Spec.Containers[0].Name)
			return nil
		}
	}
	return r.exitOf(ctx, waited)
}

// goesOn tells whether a pod may go on when the session ends.
func (r *runOptions) goesOn(pod *core.Pod) bool {
	return pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || r.leaveStdinOpen
}

// exitOf waits for the end of a pod that does not start again, and passes its
// exit code on.
func (r *runOptions) exitOf(ctx context.Context, pod *core.Pod) error {
	if r.goesOn(pod) {
		return nil
	}
	silent := &progress.Plain{Out: io.Discard} // the container has spoken for itself
	ended, err := r.observe(ctx, pod, r.timeout, silent, func(_ progress.View, p *core.Pod) bool { return core.Ended(p.Status.Phase) })
	if err != nil {
		return err
	}
	if ended.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	for i := range ended.Status.ContainerStatuses {
		if t := ended.Status.ContainerStatuses[i].State.Terminated; t != nil && t.ExitCode != 0 {
			return frame.ExitCode(t.ExitCode)
		}
	}
	return fmt.Errorf("pod %q failed: %s", pod.Name, orUnknown(ended.Status.Reason))
}

// removeAll deletes the pod and its service, also after Ctrl-C.
func (r *runOptions) removeAll(ctx context.Context, created []core.Object) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	options := &metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, PropagationPolicy: r.cascade.Propagation(),
	}
	how := "deleted"
	if r.force {
		r.grace, how = 0, "force deleted"
	}
	if r.grace >= 0 {
		options.GracePeriodSeconds = &r.grace
	}
	client, err := r.Server()
	for i, resource := range []core.Resource{core.Pods, core.Services}[:len(created)] {
		object, kind := created[i], strings.ToLower(resource.Kind)
		failed := err
		if uid := object.GetUID(); uid != "" { // and not what others made of that name meanwhile
			options.Preconditions = &metav1.Preconditions{UID: &uid}
		}
		if failed == nil {
			failed = client.Resource(resource, object.GetNamespace()).Delete(ctx, object.GetName(), options, nil)
		}
		switch {
		case apierrors.IsNotFound(failed): // somebody was faster
		case failed != nil:
			fmt.Fprintf(r.Err, "error: %s %q was not deleted: %v\n", kind, object.GetName(), failed)
		case !r.quiet:
			fmt.Fprintf(r.Out, "%s %q %s from %s namespace\n", kind, object.GetName(), how, object.GetNamespace())
		}
	}
}
