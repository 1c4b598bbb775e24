package kubelet

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/proto/core"
	"kctl/proto/relay"
)

// podEvents passes on what happened to pods. On the way it makes the relay's
// stamps from what tells of a leg that was passed.
type podEvents struct{ k *Kubelet }

// legs are the events of a container that are legs of the relay.
var legs = map[string]relay.Hop{
	"Pulled":  relay.KubeletImagePulled,
	"Created": relay.KubeletCreated,
	"Started": relay.KubeletStarted,
}

func (e podEvents) Eventf(obj runtime.Object, eventType, reason, format string, args ...any) {
	if e.k.recorder != nil {
		e.k.recorder.Eventf(e.k.inAPI(obj), eventType, reason, format, args...)
	}
}

// Laterf is Eventf for what nobody needs to know before pods run.
func (e podEvents) Laterf(obj runtime.Object, eventType, reason, format string, args ...any) {
	if e.k.recorder != nil {
		e.k.recorder.Laterf(e.k.inAPI(obj), eventType, reason, format, args...)
	}
}

func (e podEvents) ContainerEventf(pod *core.Pod, fieldPath, eventType, reason, format string, args ...any) {
	if hop, ok := legs[reason]; ok {
		if _, name, ok := strings.Cut(strings.TrimSuffix(fieldPath, "}"), "{"); ok {
			e.k.statuses.Recorder(pod).Stamp(hop.Of(name), e.k.clock.Now())
		}
	}
	if e.k.recorder == nil {
		return
	}
	object, ok := e.k.inAPI(pod).(*core.Pod)
	if !ok {
		return
	}
	tell := e.k.recorder.ContainerEventf
	if _, leg := legs[reason]; leg && eventType == corev1.EventTypeNormal {
		tell = e.k.recorder.ContainerLaterf
	}
	tell(object, fieldPath, eventType, reason, format, args...)
}

// starting tells whether pods are brought to their containers now, or the API is
// being told of it: people can wait for the events of that until it is done.
func (k *Kubelet) starting() bool { return k.starts.Load() > 0 || k.statuses.Sending() }

// countStart counts a pod that is brought to its containers, until the function
// that it returns is called.
func (k *Kubelet) countStart() (started func()) {
	k.starts.Add(1)
	return func() {
		if k.starts.Add(-1) == 0 {
			k.rested()
		}
	}
}

func (k *Kubelet) rested() {
	if k.recorder != nil {
		k.recorder.Rested()
	}
}

// inAPI is the object that people find in the API: for a static pod its
// mirror, once there is one.
func (k *Kubelet) inAPI(obj runtime.Object) runtime.Object {
	if pod, ok := obj.(*core.Pod); ok {
		if object := k.pods.APIPod(pod); object != nil {
			return object
		}
	}
	return obj
}

// nodeWarning tells people of trouble that is the node's and no pod's.
func (k *Kubelet) nodeWarning(reason, message string) {
	k.sink().Eventf(k.node.Node(), corev1.EventTypeWarning, reason, "%s", message)
}

func (k *Kubelet) sink() podEvents { return podEvents{k} }
