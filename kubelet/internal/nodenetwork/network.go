package nodenetwork

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// Options of a Network.
type Options struct {
	Mode      Mode // not None
	Node      string
	ConfigDir string // of the CNI configuration
	Client    *rest.Client
	Clock     clock.Clock
	Logger    *zap.Logger
}

// Network maintains the node's part of the pod network.
type Network struct {
	options   Options
	reflector *watch.Reflector[*core.Node]
	kick      chan struct{}

	mu    sync.Mutex
	peers map[string]peer
}

// New returns a network; nothing is changed until Run.
func New(o Options) *Network {
	n := &Network{options: o, kick: make(chan struct{}, 1), peers: map[string]peer{}}
	n.reflector = watch.NewReflector(o.Client.Resource(core.Nodes, ""), func() *core.Node { return new(core.Node) }, n,
		watch.Options{Clock: o.Clock, Logger: o.Logger})
	return n
}

func peerOf(node *core.Node) peer {
	p := peer{name: node.Name}
	for _, a := range node.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			p.addresses = append(p.addresses, ip.Unmap())
		}
	}
	for _, cidr := range node.Spec.PodCIDRs {
		if r, err := netip.ParsePrefix(cidr); err == nil {
			p.ranges = append(p.ranges, r.Masked())
		}
	}
	return p
}

// Replace implements watch.Sink.
func (n *Network) Replace(nodes []*core.Node) {
	n.mu.Lock()
	clear(n.peers)
	for _, node := range nodes {
		n.peers[node.Name] = peerOf(node)
	}
	n.mu.Unlock()
	n.wake()
}

// Apply implements watch.Sink.
func (n *Network) Apply(t watch.Type, node *core.Node) {
	now := peerOf(node)
	n.mu.Lock()
	before, known := n.peers[node.Name]
	if t == watch.Deleted {
		delete(n.peers, node.Name)
	} else {
		n.peers[node.Name] = now
	}
	n.mu.Unlock()
	if !known || t == watch.Deleted || fmt.Sprint(before) != fmt.Sprint(now) { // not with each heartbeat
		n.wake()
	}
}

func (n *Network) wake() {
	select {
	case n.kick <- struct{}{}:
	default:
	}
}

// again is how often the network is checked when nothing happens: others may
// have flushed rules or routes.
const again = time.Minute

var retry = backoff.Policy{Initial: time.Second, Max: again, Jitter: 0.2}

// Run maintains the network until ctx ends, and then leaves it as it is, for running
// pods.
func (n *Network) Run(ctx context.Context) error {
	var following sync.WaitGroup
	following.Go(func() { _ = n.reflector.Run(ctx) }) // ends with ctx only
	defer following.Wait()
	last, failures := "", 0
	for after := again; ; {
		// The first list kicks, too: nothing is done before the nodes are known.
		timer := n.options.Clock.NewTimer(after)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-n.kick:
		case <-timer.C():
		}
		timer.Stop()
		err := n.ensure(ctx)
		if err == nil {
			after, last, failures = again, "", 0
			continue
		}
		failures++
		after = retry.Delay(failures)
		if text := err.Error(); text != last && ctx.Err() == nil {
			last = text
			n.tell(err)
		}
	}
}

func (n *Network) tell(err error) {
	if wait, ok := errors.AsType[waiting](err); ok {
		n.options.Logger.Info("the node's network waits", zap.String("for", string(wait)))
		return
	}
	n.options.Logger.Error("the node's network is not as it should be, trying on", zap.Error(err))
}

// waiting is what a node that is new still lacks.
type waiting string

func (w waiting) Error() string { return string(w) }

// ensure brings the network to what the Node objects say. The CNI configuration
// comes last: with it the runtime begins to assign addresses.
func (n *Network) ensure(ctx context.Context) error {
	n.mu.Lock()
	peers := slices.Collect(maps.Values(n.peers))
	n.mu.Unlock()
	p, problems := makePlan(n.options.Mode, n.options.Node, peers)
	if len(p.own.addresses) == 0 {
		return waiting("the node to be registered with an address")
	}
	if len(p.own.ranges) == 0 {
		return waiting("spec.podCIDRs of the node: API servers give them with --allocate-node-cidrs and --cluster-cidr")
	}
	if err := n.isHere(&p.own); err != nil {
		return err
	}
	var errs []error
	for _, problem := range problems {
		errs = append(errs, errors.New(problem))
	}
	mtu, err := n.connect(p)
	var underlay netip.Addr
	if n.options.Mode == VXLAN {
		underlay = p.own.underlay()
	}
	errs = append(errs, err, forward(p.own.ranges), setRules(ctx, p.own.ranges, p.pods, underlay))
	text, err := conflist(p.own.ranges, mtu)
	if err == nil {
		var written bool
		if written, err = writeConfig(n.options.ConfigDir, text); written {
			n.options.Logger.Info("the network of the node's pods is set",
				zap.Stringers("ranges", p.own.ranges), zap.String("config", n.options.ConfigDir))
		}
	}
	return errors.Join(append(errs, err)...)
}

// isHere guards against the network of another machine that has our node's name.
func (n *Network) isHere(own *peer) error {
	for _, address := range own.addresses {
		if _, err := linkWith(address); err == nil {
			return nil
		}
	}
	return fmt.Errorf("node %s has the addresses %s, of which this machine has none: does another machine have the same node name "+
		"(--hostname-override), or is --node-ip wrong?", n.options.Node, own.addresses)
}

// connect sets the routes to other nodes. It returns their MTU; 0 for that of
// the links.
func (n *Network) connect(p plan) (mtu int, err error) {
	if n.options.Mode != VXLAN {
		if err := removeVXLAN(); err != nil {
			return 0, err
		}
		return 0, setRoutes(p.routes, nil)
	}
	link, err := setVXLAN(p)
	if link == nil {
		return 0, err
	}
	return link.Attrs().MTU, errors.Join(err, setRoutes(p.routes, link))
}
