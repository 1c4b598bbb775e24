package server

import (
	"context"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/identity"
	"kctl/apiserver/internal/informer"
	"kctl/proto/relay"
)

// traceChange notes when pods appear on the watch: new ones, those that have begun to run, those
// that are to be deleted, and when they are gone.
func (s *Server) traceChange(key informer.Key, old, now *informer.Pod) {
	select {
	case <-s.pods.Synced():
	default:
		return // stored before this server started
	}
	at := s.clock.Now()
	if now == nil {
		s.ring.Add(key.Namespace, key.Name, string(old.UID), relay.Stamp{Hop: relay.ServerRemoved, At: at})
		return
	}
	if now.Deleted && (old == nil || !old.Deleted) {
		s.ring.Add(key.Namespace, key.Name, string(now.UID), relay.Stamp{Hop: relay.ServerDeleting, At: at})
	}
	if old == nil || old.UID != now.UID {
		s.ring.Add(key.Namespace, key.Name, string(now.UID), relay.Stamp{Hop: relay.ServerWatched, At: at})
	}
	if now.Phase == corev1.PodRunning && (old == nil || old.Phase != corev1.PodRunning) {
		s.ring.Add(key.Namespace, key.Name, string(now.UID), relay.Stamp{Hop: relay.ServerStatusRunning, At: at})
	}
}

// messageResource is what metrics call the messages in which servers exchange stamps.
var messageResource = schema.GroupResource{Resource: "relayMessages"}

// exchangeStamps lets the cluster's API servers ask each other for their stamps, until it is told to
// stop. Nobody else uses an etcd that is embedded.
func (s *Server) exchangeStamps(ctx context.Context) error {
	if !wait(ctx, s.bootstrapped) {
		return ctx.Err()
	}
	s.exchange.Introduce(net.JoinHostPort(identity.Hostname(), strconv.Itoa(s.port)))
	if len(s.options.EtcdServers) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	return s.exchange.Run(ctx)
}
