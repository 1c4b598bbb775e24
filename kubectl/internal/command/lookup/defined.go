package lookup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/manifest"
	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// Definitions are what kinds of users' own come from.
var Definitions = core.Resource{
	Group: "apiextensions.k8s.io", Version: "v1", Name: "customresourcedefinitions", Kind: "CustomResourceDefinition",
}

// defined finds the resource of a kind that the server may not have yet in the definitions
// that are sent before its objects.
func defined(definitions []manifest.Object, kind schema.GroupVersionKind) (found discover.Resource, ok bool) {
	for _, object := range definitions {
		text := func(fields ...string) string {
			value, _, _ := unstructured.NestedString(object.Object, fields...)
			return value
		}
		if text("spec", "group") != kind.Group || text("spec", "names", "kind") != kind.Kind {
			continue
		}
		versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
		for _, version := range versions {
			fields, _ := version.(map[string]any)
			if fields["name"] == kind.Version && fields["served"] == true {
				return discover.Resource{Resource: core.Resource{
					Group:      kind.Group,
					Version:    kind.Version,
					Name:       text("spec", "names", "plural"),
					Kind:       kind.Kind,
					Namespaced: text("spec", "scope") == namespaced,
				}}, true
			}
		}
	}
	return found, false
}

// A server begins to serve a kind some time after it has stored its definition.
const (
	servedPause = 50 * time.Millisecond
	servedAfter = 10 * time.Second
)

// awaited is a kind that the same command has defined.
type awaited struct {
	missing   error  // of the target: that the server does not have its kind
	namespace string // of the object, as its file has it
	kind      *awaitedKind
}

// awaitedKind is what is known of a kind that several targets wait for.
type awaitedKind struct {
	gaveUp  bool
	instead *discover.Resource // that the server keeps
}

// await is for an object of a kind that is waited for.
func await(kinds map[schema.GroupVersionKind]*awaitedKind, object manifest.Object) *awaited {
	kind := object.GroupVersionKind()
	if kinds[kind] == nil {
		kinds[kind] = &awaitedKind{}
	}
	return &awaited{missing: noMapping(object), namespace: object.GetNamespace(), kind: kinds[kind]}
}

// AwaitServed waits until the server has the target's kind, if the same command has
// defined it; what was served some time ago, before it was deleted, does not count. A
// definition that is not there, since it was refused, is not waited for, and one of which
// nothing came, since its names are taken, only once for all its objects. What the server
// serves in its place, since it keeps an earlier definition, is the resource of all of
// them then.
func (t *Target) AwaitServed(ctx context.Context, c *frame.CLI) error {
	switch {
	case t.awaited == nil:
		return nil
	case t.awaited.kind.gaveUp:
		return t.awaited.missing
	case t.awaited.kind.instead != nil:
		return t.become(c, *t.awaited.kind.instead)
	}
	discovery, err := c.Discovery()
	if err != nil {
		return err
	}
	client, err := c.Server()
	if err != nil {
		return err
	}
	until := c.Clock.Now().Add(servedAfter)
	for {
		served, err := discovery.Served(ctx, t.GVK())
		_, missing := errors.AsType[*discover.NoKindError](err)
		if err != nil && !missing {
			return err
		}
		if !missing && served.Resource == t.Resource.Resource {
			t.Resource = served
			return nil
		}
		if !t.comes(ctx, client) || c.Clock.Now().After(until) {
			if !missing {
				t.awaited.kind.instead = &served
				return t.become(c, served)
			}
			t.awaited.kind.gaveUp = true
			return t.awaited.missing
		}
		if err := backoff.Sleep(ctx, c.Clock, servedPause); err != nil {
			return err
		}
		discovery.Distrust()
	}
}

// comes tells whether the server may be about to serve the target's resource: not where
// it has no such definition, keeps one of another scope, or has not accepted its names.
func (t *Target) comes(ctx context.Context, client *rest.Client) bool {
	var stored definition
	if err := client.Resource(Definitions, "").Get(ctx, t.Name+"."+t.Group, &stored); err != nil {
		return !apierrors.IsNotFound(err)
	}
	refused := func(c metav1.Condition) bool { return c.Type == "NamesAccepted" && c.Status == metav1.ConditionFalse }
	return (stored.Spec.Scope == namespaced) == t.Namespaced && !slices.ContainsFunc(stored.Status.Conditions, refused)
}

// definition is what matters here of one that is stored.
type definition struct {
	Spec   struct{ Scope string }
	Status struct{ Conditions []metav1.Condition }
}

const namespaced = "Namespaced" // a definition's scope

// become makes the target one of another resource than its definition says.
func (t *Target) become(c *frame.CLI, served discover.Resource) error {
	loaded, err := c.Kubeconfig()
	if err != nil {
		return err
	}
	t.Resource, t.Namespace = served, ""
	t.Object.SetNamespace(t.awaited.namespace)
	return t.setNamespace(loaded)
}

// noMapping names an object whose kind the server does not have.
func noMapping(object manifest.Object) error {
	return fmt.Errorf("resource mapping not found for name: %q namespace: %q from %q: %w",
		object.GetName(), object.GetNamespace(), object.Source, &discover.NoKindError{Kind: object.GroupVersionKind()})
}
