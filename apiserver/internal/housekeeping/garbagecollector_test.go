package housekeeping

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

// family is a store of config maps whose uids are their names. Finalizers keep
// them.
type family struct{ *registrytest.Store }

func (f family) Delete(ctx context.Context, namespace, name string, admit registry.Admission, o *metav1.DeleteOptions) (registry.Encoded, bool, error) {
	m, ok := f.Peek(namespace, name).(*core.ConfigMap)
	if ok && *o.PropagationPolicy == metav1.DeletePropagationForeground {
		m.Finalizers = append(m.Finalizers, metav1.FinalizerDeleteDependents)
	}
	if !ok || len(m.Finalizers) == 0 {
		return f.Store.Delete(ctx, namespace, name, admit, o)
	}
	m.DeletionTimestamp = new(metav1.Now())
	f.Put(m)
	return registry.Encoded{}, false, nil
}

func (f family) Update(ctx context.Context, target registry.Target, change registry.Transform, admit registry.Admission,
	o *metav1.UpdateOptions) (registry.Encoded, bool, error) {
	e, created, err := f.Store.Update(ctx, target, change, admit, o)
	if m, ok := f.Peek(target.Namespace, target.Name).(*core.ConfigMap); ok && m.DeletionTimestamp != nil && len(m.Finalizers) == 0 {
		_, _, err = f.Store.Delete(ctx, target.Namespace, target.Name, admit, &metav1.DeleteOptions{})
	}
	return e, created, err
}

// member makes a config map. Owners are names; with "!", the reference blocks
// the owner's deletion.
func member(name string, owners ...string) *core.ConfigMap {
	m := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	for _, owner := range owners {
		owner, blocks := strings.CutPrefix(owner, "!")
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: types.UID(owner), BlockOwnerDeletion: new(blocks),
		})
	}
	return m
}

// ending is a member that was deleted and waits for its dependents, by policy.
func ending(m *core.ConfigMap, policy string, others ...string) *core.ConfigMap {
	m.DeletionTimestamp, m.Finalizers = new(metav1.Now()), append(others, policy)
	return m
}

func (f family) names() string {
	var out []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if m, ok := f.Peek("shop", name).(*core.ConfigMap); ok && m != nil {
			text := name
			if m.DeletionTimestamp != nil {
				text += "!"
			}
			for _, owner := range m.OwnerReferences {
				text += ":" + owner.Name
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, " ")
}

// TestDependents: which dependents are deleted with their owners, and in which
// order. "x!" is being deleted, "x:y" belongs to y.
func TestDependents(t *testing.T) {
	const foreground, orphan = metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents
	for name, test := range map[string]struct {
		members []*core.ConfigMap
		want    string
	}{
		"of an owner that never was":       {[]*core.ConfigMap{member("b", "x")}, ""},
		"of one owner of two":              {[]*core.ConfigMap{member("a"), member("b", "a", "x")}, "a b:a"},
		"after its dependents":             {[]*core.ConfigMap{ending(member("a"), foreground), member("b", "!a"), member("c", "!b"), member("d", "!c")}, ""},
		"held by somebody below":           {[]*core.ConfigMap{ending(member("a"), foreground), member("b", "!a"), withFinalizer(member("c", "!b"))}, "a! b!:a c!:b"},
		"not held by who does not block":   {[]*core.ConfigMap{ending(member("a"), foreground), withFinalizer(member("b", "a"))}, "b!:a"},
		"one owner waits, the other stays": {[]*core.ConfigMap{ending(member("a"), foreground), member("d"), member("b", "!a", "d")}, "b:d d"},
		"orphans":                          {[]*core.ConfigMap{ending(member("a"), orphan), member("b", "!a"), member("c", "b")}, "b c:b"},
		"a circle":                         {[]*core.ConfigMap{ending(member("a", "!c"), foreground), member("b", "!a"), member("c", "!b")}, ""},
		"itself":                           {[]*core.ConfigMap{ending(member("a", "!a"), foreground)}, ""},
		"two that wait for each other":     {[]*core.ConfigMap{ending(member("a", "!b"), foreground), ending(member("b", "!a"), foreground)}, "a!:b b!:a"},
		"already going":                    {[]*core.ConfigMap{ending(member("b", "x"), "example.com/hold")}, "b!:x"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := family{registrytest.New(core.ConfigMaps)}
				for _, m := range test.members {
					f.Put(m)
				}
				start(t, newGarbageCollector, registrytest.New(core.Pods), f)
				pass(retryPolicy.Max)
				if got := f.names(); got != test.want {
					t.Errorf("left: %q, want %q", got, test.want)
				}
			})
		})
	}
}

func withFinalizer(m *core.ConfigMap) *core.ConfigMap {
	m.Finalizers = append(m.Finalizers, "example.com/hold")
	return m
}

// ahead is a family whose stored members no longer have owners: its informers,
// fed by lists and watches, are behind it.
type ahead struct{ family }

func (a ahead) Get(ctx context.Context, namespace, name, version string) (registry.Encoded, error) {
	m, ok := a.Peek(namespace, name).(*core.ConfigMap)
	if !ok {
		return a.family.Get(ctx, namespace, name, version)
	}
	m.OwnerReferences = nil
	text, err := json.Marshal(m)
	return registry.Encoded{JSON: text}, err
}

// TestDependentsThatAreOrphansByNow: an owner that orphans its dependents is
// seen to be gone before they are seen to be orphaned.
func TestDependentsThatAreOrphansByNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := family{registrytest.New(core.ConfigMaps)}
		f.Put(member("b", "x"))
		start(t, newGarbageCollector, registrytest.New(core.Pods), ahead{f})
		pass(retryPolicy.Max)
		if got := f.names(); got != "b:x" {
			t.Errorf("left: %q", got)
		}
	})
}

// TestOwnersOutOfReach: a cluster-scoped object has no owner in a namespace,
// whatever it says; an owner of a kind that is not served may exist.
func TestOwnersOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, maps, pods := registrytest.New(core.Nodes), registrytest.New(core.ConfigMaps), registrytest.New(core.Pods)
		owned := node("n1", "True")
		owned.OwnerReferences = member("x", "a").OwnerReferences
		nodes.Put(owned)
		far := member("b")
		far.OwnerReferences = []metav1.OwnerReference{{APIVersion: "far.example.com/v1", Kind: "Thing", Name: "x", UID: "x"}}
		maps.Put(far)
		start(t, newGarbageCollector, pods, nodes, maps)
		pass(retryPolicy.Max)
		for what, there := range map[string]bool{"node": nodes.Peek("", "n1") != nil, "config map": maps.Peek("shop", "b") != nil} {
			if !there {
				t.Errorf("the %s is gone", what)
			}
		}
		if slices.Contains(owned.Finalizers, metav1.FinalizerDeleteDependents) {
			t.Error("the node waits")
		}
	})
}
