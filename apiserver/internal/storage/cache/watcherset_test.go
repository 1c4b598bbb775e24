package cache

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/fields"
)

const podPrefix = "/registry/pods/"

// nodePod is the entry of a pod on a node.
func (c *Cache) nodePod(name, node string) *Entry {
	value := fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"d"},"spec":{"nodeName":%q}}`, name, node)
	return &Entry{Key: podPrefix + "d/" + name, Value: []byte(value), namespace: "d", name: name}
}

func forAudience() *Cache {
	return &Cache{watchers: newWatcherSet(), options: Options{
		Prefix: podPrefix, Namespaced: true, Logger: zap.NewNop(),
		Fields: func(value []byte) (fields.Set, error) {
			var pod struct{ Spec struct{ NodeName string } }
			err := json.Unmarshal(value, &pod)
			return fields.Set{"spec.nodeName": pod.Spec.NodeName}, err
		},
	}}
}

func (c *Cache) listen(t testing.TB, selector string) *Watcher {
	s, err := fields.ParseSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	w := &Watcher{cache: c, options: WatchOptions{Selection: Selection{Prefix: podPrefix, Fields: s}}}
	c.watchers.add(w)
	return w
}

// Every watcher that sees something of a change is among the concerned, once.
func TestWhoIsConcerned(t *testing.T) {
	c := forAudience()
	var watchers []*Watcher
	for _, selector := range []string{"", "spec.nodeName=a", "spec.nodeName=b", "spec.nodeName=", "spec.nodeName!=a", "metadata.name=x",
		"metadata.name=y,spec.nodeName=a", "metadata.namespace=d", "metadata.namespace=e,spec.nodeName=a", "spec.nodeName=a"} {
		watchers = append(watchers, c.listen(t, selector))
	}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	for range 300 {
		name := pick("x", "y", "z")
		ch := &change{kind: pick(Added, Modified, Deleted), revision: 5, entry: c.nodePod(name, pick("a", "b", "c", ""))}
		if ch.kind != Added {
			ch.old = c.nodePod(name, pick("a", "b", "c", ""))
		}
		concerned := map[*Watcher]int{}
		for w := range c.interestedWatchers(ch) {
			concerned[w]++
		}
		for _, w := range watchers {
			if n := concerned[w]; n > 1 || n == 0 && wants(w, ch) {
				t.Fatalf("%s of %s -> %v: %q is notified %d times", ch.kind, ch.entry.Value, ch.old, w.options.Fields, n)
			}
		}
		if ch.old == nil && ch.entry.name == "z" && concerned[watchers[5]] != 0 {
			t.Fatal("a watcher of another pod is concerned")
		}
	}
	for w := range c.watchers.all() {
		c.watchers.remove(w)
	}
	c.watchers.remove(watchers[1]) // as when a watcher has been ended
	if len(c.watchers.others)+len(c.watchers.byField) != 0 {
		t.Errorf("left behind: %+v", c.watchers)
	}
}

// BenchmarkConcerned finds the kubelet that a change concerns among those of
// 5,000 nodes; the floor is finding it when there is no other.
func BenchmarkConcerned(b *testing.B) {
	for _, bench := range []struct {
		name  string
		nodes int
	}{{"one", 1}, {"5000", 5000}} {
		b.Run(bench.name, func(b *testing.B) {
			c := forAudience()
			for i := range bench.nodes {
				c.listen(b, fmt.Sprintf("spec.nodeName=node-%d", i))
			}
			ch := &change{kind: Modified, revision: 5, entry: c.nodePod("x", "node-0"), old: c.nodePod("x", "")}
			for b.Loop() {
				for w := range c.interestedWatchers(ch) {
					if !wants(w, ch) {
						b.Fatal("not wanted")
					}
				}
			}
		})
	}
}

func wants(w *Watcher, ch *change) bool {
	_, sees := w.sees(ch)
	return sees
}
