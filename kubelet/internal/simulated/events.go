package simulated

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// subscriberBuffer is how many events may wait for a listener; one that is
// further behind is cut off, and lists when it is back.
const subscriberBuffer = 1000

// GetContainerEvents streams what happens until the caller goes.
func (r *Runtime) GetContainerEvents(_ *runtimeapi.GetEventsRequest,
	stream grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	events := make(chan *runtimeapi.ContainerEventResponse, subscriberBuffer)
	r.mu.Lock()
	r.subscribers[events] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.subscribers, events)
		r.mu.Unlock()
	}()
	for {
		select {
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case event, ok := <-events:
			if !ok {
				return status.Error(codes.ResourceExhausted, "too far behind, or ended by the runtime")
			}
			if err := stream.Send(event); err != nil {
				return err
			}
		}
	}
}

// Disconnect ends all event streams, as the restart of a runtime does.
func (r *Runtime) Disconnect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for events := range r.subscribers {
		delete(r.subscribers, events)
		close(events)
	}
}

// Listeners counts the listeners to events.
func (r *Runtime) Listeners() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.subscribers)
}

// tell sends the event of what just happened in a sandbox, with the state of
// everything in it. The caller holds r.mu.
func (r *Runtime) tell(kind runtimeapi.ContainerEventType, id string, s *sandbox) {
	if len(r.subscribers) == 0 {
		return
	}
	event := &runtimeapi.ContainerEventResponse{
		ContainerId: id, ContainerEventType: kind, CreatedAt: r.Clock.Now().UnixNano(), PodSandboxStatus: s.status(),
	}
	for _, c := range r.containersOf(s.id) {
		event.ContainersStatuses = append(event.ContainersStatuses, c.status())
	}
	for events := range r.subscribers {
		select {
		case events <- event:
		default:
			delete(r.subscribers, events)
			close(events)
		}
	}
}
