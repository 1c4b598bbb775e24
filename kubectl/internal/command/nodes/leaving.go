package nodes

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"kctl/proto/core"
)

// verdict is what a drain does with a pod: let it be, evict it, warn of it, or, because of
// it, leave the node as it is.
type verdict struct {
	leaves       bool
	warn, refuse string
}

const (
	unmanagedRefused   = "Pods that declare no controller (use --force to override)"
	unmanagedWarned    = "deleting Pods that declare no controller"
	localRefused       = "Pods with local storage (use --delete-emptydir-data to override)"
	ofDaemonSetRefused = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
	ofDaemonSetWarned  = "ignoring DaemonSet-managed Pods"
)

// podsToEvict returns a node's pods that are to be evicted, or an error that says why
// the node can't be drained.
func (d *drainOptions) podsToEvict(ctx context.Context, node string) ([]core.Pod, error) {
	pods, err := d.podsOn(ctx, node)
	if err != nil {
		return nil, err
	}
	var leaving []core.Pod
	refused, warned := map[string][]string{}, map[string][]string{}
	for i := range pods {
		v, err := d.verdictOn(ctx, &pods[i])
		if err != nil {
			return nil, err
		}
		name := pods[i].Namespace + "/" + pods[i].Name
		switch {
		case v.refuse != "":
			refused[v.refuse] = append(refused[v.refuse], name)
		case v.warn != "":
			warned[v.warn] = append(warned[v.warn], name)
		}
		if v.leaves {
			leaving = append(leaving, pods[i])
		}
	}
	if len(refused) > 0 {
		var failed []error
		for _, line := range byReason(refused) {
			failed = append(failed, errCannotDelete(line))
		}
		return nil, utilerrors.NewAggregate(failed)
	}
	if len(warned) > 0 {
		d.Warn("%s", strings.Join(byReason(warned), "; "))
	}
	return leaving, nil
}

// errCannotDelete names pods, and why they are not deleted.
type errCannotDelete string

func (e errCannotDelete) Error() string { return "cannot delete " + string(e) }

// byReason is a line for each reason, with its pods.
func byReason(pods map[string][]string) []string {
	var lines []string
	for _, reason := range slices.Sorted(maps.Keys(pods)) {
		lines = append(lines, reason+": "+strings.Join(pods[reason], ", "))
	}
	return lines
}

// verdictOn looks at what a pod is, in kubectl's order: where several things speak against
// it, the first is told.
func (d *drainOptions) verdictOn(ctx context.Context, pod *core.Pod) (verdict, error) {
	controller := metav1.GetControllerOf(pod)
	switch {
	case d.overdue(pod):
		return verdict{}, nil // it is terminating, and nobody waits for it
	case pod.Annotations[corev1.MirrorPodAnnotationKey] != "":
		return verdict{}, nil
	case core.Ended(pod.Status.Phase):
		return verdict{leaves: true}, nil
	case controller != nil && controller.Kind == "DaemonSet" && controller.APIVersion == daemonSets.Group+"/"+daemonSets.Version:
		v, err := d.verdictOnDaemon(ctx, pod, controller.Name)
		if err != nil || !v.leaves {
			return v, err
		}
	}
	switch {
	case !d.deleteEmptyDir && usesEmptyDir(pod):
		return verdict{refuse: localRefused}, nil
	case controller == nil && !d.force:
		return verdict{refuse: unmanagedRefused}, nil
	case controller == nil:
		return verdict{leaves: true, warn: unmanagedWarned}, nil
	}
	return verdict{leaves: true}, nil
}

var daemonSets = core.Resource{Group: "apps", Version: "v1", Name: "daemonsets", Kind: "DaemonSet", Namespaced: true}

// verdictOnDaemon lets a daemon set's pods be: it would bring them back. Those whose daemon
// set is gone leave with --force.
func (d *drainOptions) verdictOnDaemon(ctx context.Context, pod *core.Pod, set string) (verdict, error) {
	client, err := d.Server()
	if err != nil {
		return verdict{}, err
	}
	err = client.Resource(daemonSets, pod.Namespace).Get(ctx, set, nil)
	switch {
	case ctx.Err() != nil:
		return verdict{}, ctx.Err()
	case apierrors.IsNotFound(err) && d.force:
		return verdict{leaves: true}, nil
	case err != nil:
		return verdict{refuse: err.Error()}, nil
	case !d.ignoreDaemonSets:
		return verdict{refuse: ofDaemonSetRefused}, nil
	}
	return verdict{warn: ofDaemonSetWarned}, nil
}

// overdue says that a pod should have been gone for longer than
// --skip-wait-for-delete-timeout.
func (d *drainOptions) overdue(pod *core.Pod) bool {
	return d.skipWait > 0 && pod.DeletionTimestamp != nil &&
		d.Clock.Since(pod.DeletionTimestamp.Time) > time.Duration(d.skipWait)*time.Second
}

func usesEmptyDir(pod *core.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil })
}
