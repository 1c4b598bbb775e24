package kubelet

import (
	"context"
	"maps"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/podmanager"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

const mirrorTimeout = 10 * time.Second

// ensureMirror sees to it that the API shows a static pod, which is to run, as it
// is now. A mirror that has ended shows an earlier one, whose manifest came back.
// The pod does not wait for that: it must run without an API server too.
func (k *Kubelet) ensureMirror(pod *core.Pod) {
	if k.client == nil || !podmanager.IsStatic(pod) || ending(pod) || k.node.Node().UID == "" {
		return // its mirror belongs to the node: housekeeping makes it when there is one
	}
	mirror := k.pods.Mirror(pod)
	if mirror != nil && !ending(mirror) && podmanager.IsMirrorOf(mirror, pod) {
		return
	}
	k.background.Go(func() {
		if mirror != nil {
			k.deleteMirror(mirror)
		}
		k.createMirror(pod)
	})
}

// dropMirror deletes the mirror of a static pod that was taken away, and has ended.
// If its manifest is back by now, that pod is another and gets a mirror of its own,
// whether or not the API was told in time how this one ended.
func (k *Kubelet) dropMirror(pod *core.Pod) {
	mirror := k.mirrorOf(pod)
	if k.client == nil || mirror == nil {
		return
	}
	k.background.Go(func() { k.deleteMirror(mirror) })
}

func (k *Kubelet) createMirror(pod *core.Pod) {
	ctx, cancel := context.WithTimeout(context.Background(), mirrorTimeout)
	defer cancel()
	mirror := pod.DeepCopy()
	mirror.UID, mirror.ResourceVersion, mirror.Status = "", "", core.PodStatus{}
	mirror.Annotations = maps.Clone(pod.Annotations)
	mirror.Annotations[core.ConfigMirrorAnnotation] = pod.Annotations[core.ConfigHashAnnotation]
	node := k.node.Node()
	mirror.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: ptr.To(true)}}
	err := k.client.Resource(core.Pods, pod.Namespace).Create(ctx, mirror, nil)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		k.logger.Warn("mirror pod not created", daemon.PodFields(pod), zap.Error(err))
	}
}

func (k *Kubelet) deleteMirror(mirror *core.Pod) {
	ctx, cancel := context.WithTimeout(context.Background(), mirrorTimeout)
	defer cancel()
	err := k.client.Resource(core.Pods, mirror.Namespace).Delete(ctx, mirror.Name, &metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To(int64(0)), Preconditions: &metav1.Preconditions{UID: &mirror.UID},
	}, nil)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		k.logger.Warn("mirror pod not deleted", daemon.PodFields(mirror), zap.Error(err))
	}
}
