package server

import (
	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/informer"
	"kctl/proto/relay"
)

// traceChange notes when pods appear on the watch: new ones, and those that
// have begun to run.
func (s *Server) traceChange(key informer.Key, old, now *informer.Pod) {
	if now == nil {
		return
	}
	select {
	case <-s.pods.Synced():
	default:
		return // stored before this server started
	}
	at := s.clock.Now()
	if old == nil || old.UID != now.UID {
		s.ring.Add(key.Namespace, key.Name, string(now.UID), relay.Stamp{Hop: relay.ServerWatched, At: at})
	}
	if now.Phase == corev1.PodRunning && (old == nil || old.Phase != corev1.PodRunning) {
		s.ring.Add(key.Namespace, key.Name, string(now.UID), relay.Stamp{Hop: relay.ServerStatusRunning, At: at})
	}
}
