package server

import (
	"context"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/identity"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/relaystamps"
	"kctl/apiserver/internal/storage/measured"
	"kctl/proto/relay"
)

// stamps are those of pods' way through the relay, this server's and those of the
// cluster's others.
type stamps struct {
	*process
	ring     *relaystamps.Ring
	exchange *relaystamps.Exchange
	pods     *informer.Informer[informer.Pod]
	endpoint *endpoint
}

// newStamps also has the changes of pods noted.
func newStamps(d *database, pods *informer.Informer[informer.Pod], endpoint *endpoint) *stamps {
	ring := relaystamps.NewRing(relaystamps.Capacity)
	messages := measured.Of(messageResource, d.backend.Storage)
	exchange := relaystamps.NewExchange(ring, messages, d.options.EtcdPrefix+relaystamps.Prefix, d.clock, d.logger.Named("relay"))
	s := &stamps{process: d.process, ring: ring, exchange: exchange, pods: pods, endpoint: endpoint}
	pods.OnChange(s.note)
	return s
}

// note notes when pods appear on the watch: new ones, those that have begun to run, those
// that are to be deleted, and when they are gone.
func (s *stamps) note(key informer.Key, old, now *informer.Pod) {
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

// run lets the cluster's API servers ask each other for their stamps, until it is told to
// stop. Nobody else uses an etcd that is embedded.
func (s *stamps) run(ctx context.Context) error {
	if !wait(ctx, s.bootstrapped) {
		return ctx.Err()
	}
	s.exchange.Introduce(net.JoinHostPort(identity.Hostname(), strconv.Itoa(s.endpoint.port)))
	if len(s.options.EtcdServers) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	return s.exchange.Run(ctx)
}
