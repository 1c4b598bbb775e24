package kubelet

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/status"
	"kctl/proto/core"
	"kctl/proto/events"
	"kctl/proto/relay"
)

// longestWait is how long people may have to wait for the event of a start that they
// look for, on a node that starts very many pods at once.
const longestWait = 3 * time.Second

// podEvents passes on events about pods and the node. On the way it makes the relay's
// stamps from those events that mark a leg.
type podEvents struct {
	recorder *events.Recorder // nil without an API server
	pods     *podmanager.Manager
	statuses *status.Manager
	node     func() *core.Node
	clock    clock.PassiveClock

	starts atomic.Int32 // pods that are being started now
}

// legs are the events of a container that are legs of the relay.
var legs = map[string]relay.Hop{
	"Created": relay.KubeletCreated,
	"Started": relay.KubeletStarted,
}

func (e *podEvents) Eventf(obj runtime.Object, eventType, reason, format string, args ...any) {
	e.Annotated(obj, nil, eventType, reason, fmt.Sprintf(format, args...))
}

// Annotated is Eventf with annotations of the event.
func (e *podEvents) Annotated(obj runtime.Object, annotations map[string]string, eventType, reason, message string) {
	if e.recorder != nil {
		e.recorder.Annotated(e.inAPI(obj), annotations, eventType, reason, message)
	}
}

// Laterf is Eventf for events that can wait until pods run.
func (e *podEvents) Laterf(obj runtime.Object, eventType, reason, format string, args ...any) {
	if e.recorder != nil {
		e.recorder.Laterf(e.inAPI(obj), eventType, reason, format, args...)
	}
}

func (e *podEvents) ContainerEventf(pod *core.Pod, fieldPath, eventType, reason, format string, args ...any) {
	hop, leg := legs[reason]
	if leg {
		e.stamp(pod, fieldPath, hop)
	}
	if e.recorder == nil {
		return
	}
	object, ok := e.inAPI(pod).(*core.Pod)
	if !ok {
		return
	}
	tell := e.recorder.ContainerEventf
	if (leg || reason == "Pulled") && eventType == corev1.EventTypeNormal {
		tell = e.recorder.ContainerLaterf
	}
	tell(object, fieldPath, eventType, reason, format, args...)
}

// stamp notes that a container has passed a leg.
func (e *podEvents) stamp(pod *core.Pod, fieldPath string, hop relay.Hop) {
	if _, name, ok := strings.Cut(strings.TrimSuffix(fieldPath, "}"), "{"); ok {
		e.statuses.Stamps(pod).Stamp(hop.Of(name), e.clock.Now())
	}
}

// starting tells whether pods are being started now, or the API is being told
// about that: the events about it can wait until then.
func (e *podEvents) starting() bool { return e.starts.Load() > 0 || e.statuses.Sending() }

// StartPod counts a pod that is being started, until the returned function is
// called.
func (e *podEvents) StartPod() (started func()) {
	e.starts.Add(1)
	return func() {
		if e.starts.Add(-1) == 0 {
			e.rested()
		}
	}
}

func (e *podEvents) rested() {
	if e.recorder != nil {
		e.recorder.Rested()
	}
}

// inAPI is the object that people find in the API: for a static pod its
// mirror, once there is one.
func (e *podEvents) inAPI(obj runtime.Object) runtime.Object {
	if pod, ok := obj.(*core.Pod); ok {
		if object := e.pods.APIPod(pod); object != nil {
			return object
		}
	}
	return obj
}

// systemOOM writes an event that the kernel ended a process because the node is out of memory.
func (e *podEvents) systemOOM(message string) { e.nodeWarning("SystemOOM", message) }

// nodeWarning writes an event about trouble of the node rather than of a pod.
func (e *podEvents) nodeWarning(reason, message string) {
	e.Eventf(e.node(), corev1.EventTypeWarning, reason, "%s", message)
}
