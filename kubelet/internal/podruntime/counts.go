package podruntime

// Counted is something that metrics count; its values are upstream's names of
// the counters.
type Counted string

// What is counted.
const (
	StartedPods              Counted = "started_pods_total"
	StartedPodsFailed        Counted = "started_pods_errors_total"
	UserNamespacedPods       Counted = "started_user_namespaced_pods_total"
	UserNamespacedPodsFailed Counted = "started_user_namespaced_pods_errors_total"
	ImageVolumesRequested    Counted = "image_volume_requested_total"
	ImageVolumesMounted      Counted = "image_volume_mounted_succeed_total"
	ImageVolumesFailed       Counted = "image_volume_mounted_errors_total"
	HTTPHooksFellBack        Counted = "lifecycle_handler_http_fallbacks_total"
)

func (m *Manager) count(what Counted, times int) {
	for range times {
		if m.Count != nil {
			m.Count(what)
		}
	}
}

// countSandbox counts an attempt at a pod's sandbox.
func (s *podSync) countSandbox(err error) {
	s.count(StartedPods, 1)
	if err != nil {
		s.count(StartedPodsFailed, 1)
	}
	s.countNamespace(err)
}

// countNamespace counts one for a pod with a user namespace of its own.
func (s *podSync) countNamespace(err error) {
	if s.pod.Spec.HostUsers == nil || *s.pod.Spec.HostUsers {
		return
	}
	s.count(UserNamespacedPods, 1)
	if err != nil {
		s.count(UserNamespacedPodsFailed, 1)
	}
}
