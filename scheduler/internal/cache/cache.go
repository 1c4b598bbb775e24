package cache

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// DefaultExpiry is how long an accepted binding may stay unseen on the watch
// before its pod is no longer counted. It is long, because dropping a pod too
// early overcommits its node; a watch is never that far behind.
const DefaultExpiry = 15 * time.Minute

// Cache is safe for concurrent use.
type Cache struct {
	clock  clock.PassiveClock
	expiry time.Duration

	mu         sync.Mutex
	nodes      map[string]*node
	byChange   *list.List // of *node, the one that changed last first
	pods       map[types.UID]*pod
	assumed    int
	expiring   *list.List // of *pod, the soonest first
	images     images
	generation int64
	namespaces int64 // grows when the labels of a namespace change
	nodeSet    int64 // grows when a node comes, goes, or moves to another zone
}

type node struct {
	info    framework.NodeInfo // its Generation is that of the cache when it changed last
	element *list.Element      // in byChange
}

type pod struct {
	info     *framework.PodInfo
	node     string
	assumed  bool
	deadline time.Time
	element  *list.Element // in expiring
}

// New returns an empty cache.
func New(clock clock.PassiveClock, expiry time.Duration) *Cache {
	return &Cache{
		clock:    clock,
		expiry:   expiry,
		nodes:    map[string]*node{},
		byChange: list.New(),
		pods:     map[types.UID]*pod{},
		expiring: list.New(),
		images:   images{byName: map[string]*framework.Image{}},
	}
}

// SetNode adds or replaces a node.
func (c *Cache) SetNode(n *core.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.entry(n.Name)
	if old := entry.info.Node; old == nil || zoneOf(old) != zoneOf(n) {
		c.nodeSet++
	}
	entry.info.SetNode(n)
	c.changed(entry)
}

// NamespaceChanged says that a namespace has other labels now.
func (c *Cache) NamespaceChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.namespaces++
}

// RemoveNode forgets a node; its pods are kept until the API says that they
// are gone, in case the node comes back.
func (c *Cache) RemoveNode(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, known := c.nodes[name]
	if !known || entry.info.Node == nil {
		return
	}
	c.nodeSet++
	entry.info.RemoveNode()
	entry.info.Images = c.images.exchange(entry.info.Images, nil)
	c.changed(entry)
	c.dropIfEmpty(name, entry)
}

// Has reports whether a pod counts on a node, because the API says so or by Assume.
func (c *Cache) Has(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pods[uid] != nil
}

// Assume counts a pod on a node before the API knows. The pod must not be in
// the cache.
func (c *Cache) Assume(info *framework.PodInfo, nodeName string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	uid := info.Pod.UID
	if old, known := c.pods[uid]; known {
		return fmt.Errorf("assume pod %s on node %s: it already counts on node %s", info.Key(), nodeName, old.node)
	}
	c.assumed++
	c.put(&pod{info: info, node: nodeName, assumed: true})
	return nil
}

// FinishBinding starts the expiry of an assumed pod whose binding was accepted.
func (c *Cache) FinishBinding(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, known := c.pods[uid]
	if !known || !p.assumed || p.element != nil {
		return
	}
	p.deadline = c.clock.Now().Add(c.expiry)
	p.element = c.expiring.PushBack(p)
}

// Bound is the node on which the API has shown a pod; empty if it has not.
func (c *Cache) Bound(uid types.UID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, known := c.pods[uid]; known && !p.assumed {
		return p.node
	}
	return ""
}

// HasNode reports whether there is a node of that name.
func (c *Cache) HasNode(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, known := c.nodes[name]
	return known && entry.info.Node != nil
}

// Forget removes an assumed pod again, and reports whether it did: not if the
// API has shown the pod by now, or it is gone.
func (c *Cache) Forget(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, known := c.pods[uid]
	if !known || !p.assumed {
		return false
	}
	c.drop(p)
	return true
}

// SetPod records what the API says about a pod on a node, which overrides any
// assumption.
func (c *Cache) SetPod(observed *core.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, known := c.pods[observed.UID]; known {
		c.drop(old)
	}
	c.put(&pod{info: framework.NewPodInfo(observed), node: observed.Spec.NodeName})
}

// RemovePod forgets a pod that ended, and reports whether it counted anywhere.
func (c *Cache) RemovePod(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, known := c.pods[uid]
	if known {
		c.drop(p)
	}
	return known
}

// Expire removes the assumed pods whose time is over, and returns them.
func (c *Cache) Expire() []*core.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	var expired []*core.Pod
	for e := c.expiring.Front(); e != nil; e = c.expiring.Front() {
		p := e.Value.(*pod)
		if p.deadline.After(now) {
			break
		}
		c.drop(p)
		expired = append(expired, p.info.Pod)
	}
	return expired
}

// Sizes counts nodes, pods and, among them, assumed pods.
func (c *Cache) Sizes() (nodes, pods, assumed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		if n.info.Node != nil {
			nodes++
		}
	}
	return nodes, len(c.pods), c.assumed
}

func (c *Cache) put(p *pod) {
	c.pods[p.info.Pod.UID] = p
	entry := c.entry(p.node)
	entry.info.AddPod(p.info)
	c.changed(entry)
}

func (c *Cache) drop(p *pod) {
	uid := p.info.Pod.UID
	delete(c.pods, uid)
	if p.assumed {
		c.assumed--
	}
	if p.element != nil {
		c.expiring.Remove(p.element)
		p.element = nil
	}
	entry := c.nodes[p.node]
	entry.info.RemovePod(uid)
	c.changed(entry)
	c.dropIfEmpty(p.node, entry)
}

func (c *Cache) entry(name string) *node {
	entry, known := c.nodes[name]
	if !known {
		entry = &node{}
		entry.element = c.byChange.PushFront(entry)
		c.nodes[name] = entry
	}
	return entry
}

// changed gives the entry the next generation and moves it to the head.
func (c *Cache) changed(entry *node) {
	c.generation++
	entry.info.Generation = c.generation
	c.byChange.MoveToFront(entry.element)
}

func (c *Cache) dropIfEmpty(name string, entry *node) {
	if entry.info.Node == nil && len(entry.info.Pods) == 0 && len(entry.info.Images) == 0 {
		c.byChange.Remove(entry.element)
		delete(c.nodes, name)
	}
}
