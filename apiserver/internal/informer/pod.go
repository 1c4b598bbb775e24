package informer

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

// Pod is what the server keeps of a pod: enough to know what its node may read,
// when it has to be evicted, and whether it is garbage.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	Node            string
	Phase           corev1.PodPhase
	ServiceAccount  string
	Secrets         []string
	ConfigMaps      []string
	Claims          []string
	// Generated are those of Claims that were generated for the pod, if they are its own.
	Generated      []string
	ResourceClaims []string
	Mirror         bool
	Created        time.Time
	Bound          time.Time // to its node; Created, for one that was made on it
	Deleted        bool      // being deleted
	Idle           bool      // being deleted, with no container that may run
	Tolerations    []corev1.Toleration
	Ready          bool
	Evicted        bool // by its kubelet
}

// HasTerminated reports whether the pod has terminated.
func (p Pod) HasTerminated() bool {
	return core.Ended(p.Phase)
}

// PodOf extracts from a pod what the server keeps.
func PodOf(obj core.Object) Pod {
	pod := obj.(*core.Pod)
	p := Pod{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		Node: pod.Spec.NodeName, Phase: pod.Status.Phase, ServiceAccount: pod.Spec.ServiceAccountName,
		Created: pod.CreationTimestamp.Time, Bound: pod.CreationTimestamp.Time, Deleted: pod.DeletionTimestamp != nil,
		Tolerations: pod.Spec.Tolerations, Idle: pod.DeletionTimestamp != nil && !mayRun(&pod.Status),
		Mirror: core.IsMirror(pod), Evicted: pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "Evicted",
	}
	for _, condition := range pod.Status.Conditions {
		holds := condition.Status == corev1.ConditionTrue
		switch condition.Type {
		case corev1.PodReady:
			p.Ready = holds
		case corev1.PodScheduled:
			if since := condition.LastTransitionTime.Time; holds && since.After(p.Bound) {
				p.Bound = since
			}
		}
	}
	p.addReferences(&pod.Spec)
	p.addResourceClaims(pod)
	return p
}

// mayRun reports whether a container runs, or may, as far as its status tells.
func mayRun(status *corev1.PodStatus) bool {
	return slices.ContainsFunc(slices.Concat(status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses),
		func(c corev1.ContainerStatus) bool {
			return c.State.Terminated == nil && c.State.Waiting == nil
		})
}

// PodNode indexes pods by their node.
func PodNode(p Pod) string { return p.Node }

func (p *Pod) addReferences(spec *core.PodSpec) {
	for _, s := range spec.ImagePullSecrets {
		addName(&p.Secrets, s.Name)
	}
	for c := range core.Containers(spec) {
		p.addEnvironment(c)
	}
	for i := range spec.EphemeralContainers {
		p.addEnvironment((*core.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	for i := range spec.Volumes {
		p.addVolume(&spec.Volumes[i])
	}
}

// addResourceClaims adds the claims that a pod names, and those generated for it.
func (p *Pod) addResourceClaims(pod *core.Pod) {
	for _, c := range pod.Spec.ResourceClaims {
		addName(&p.ResourceClaims, ptr.Deref(c.ResourceClaimName, ""))
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		addName(&p.ResourceClaims, ptr.Deref(s.ResourceClaimName, ""))
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		addName(&p.ResourceClaims, extended.ResourceClaimName)
	}
}

func (p *Pod) addEnvironment(c *core.Container) {
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil {
			addName(&p.Secrets, from.SecretRef.Name)
		}
		if from.ConfigMapRef != nil {
			addName(&p.ConfigMaps, from.ConfigMapRef.Name)
		}
	}
	for _, env := range c.Env {
		if env.ValueFrom == nil {
			continue
		}
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			addName(&p.Secrets, ref.Name)
		}
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			addName(&p.ConfigMaps, ref.Name)
		}
	}
}

func (p *Pod) addVolume(v *corev1.Volume) {
	addName(&p.Secrets, secretOf(&v.VolumeSource))
	switch {
	case v.ConfigMap != nil:
		addName(&p.ConfigMaps, v.ConfigMap.Name)
	case v.PersistentVolumeClaim != nil:
		addName(&p.Claims, v.PersistentVolumeClaim.ClaimName)
	case v.Ephemeral != nil:
		addName(&p.Claims, p.Name+"-"+v.Name)
		addName(&p.Generated, p.Name+"-"+v.Name)
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.Secret != nil {
				addName(&p.Secrets, source.Secret.Name)
			}
			if source.ConfigMap != nil {
				addName(&p.ConfigMaps, source.ConfigMap.Name)
			}
		}
	}
}

// secretOf is the secret that a volume contains or is mounted with, "" for
// none. Our kubelet mounts few of these kinds, but others that work with this
// server mount them all.
func secretOf(v *corev1.VolumeSource) string {
	var ref *corev1.LocalObjectReference
	switch {
	case v.Secret != nil:
		return v.Secret.SecretName
	case v.AzureFile != nil:
		return v.AzureFile.SecretName
	case v.CSI != nil:
		ref = v.CSI.NodePublishSecretRef
	case v.CephFS != nil:
		ref = v.CephFS.SecretRef
	case v.Cinder != nil:
		ref = v.Cinder.SecretRef
	case v.FlexVolume != nil:
		ref = v.FlexVolume.SecretRef
	case v.ISCSI != nil:
		ref = v.ISCSI.SecretRef
	case v.RBD != nil:
		ref = v.RBD.SecretRef
	case v.ScaleIO != nil:
		ref = v.ScaleIO.SecretRef
	case v.StorageOS != nil:
		ref = v.StorageOS.SecretRef
	}
	if ref == nil {
		return ""
	}
	return ref.Name
}

func addName(names *[]string, name string) {
	if name != "" && !slices.Contains(*names, name) {
		*names = append(*names, name)
	}
}
