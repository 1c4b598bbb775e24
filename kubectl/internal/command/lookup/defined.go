package lookup

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/manifest"
	"kctl/proto/backoff"
	"kctl/proto/core"
)

// Definitions are what kinds of users' own come from.
var Definitions = core.Resource{Group: "apiextensions.k8s.io", Version: "v1", Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"}

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
					Group: kind.Group, Version: kind.Version, Name: text("spec", "names", "plural"), Kind: kind.Kind,
					Namespaced: text("spec", "scope") == "Namespaced",
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
	missing error // of the target: that the server does not have its kind
	gaveUp  *bool // shared by all targets of the kind
}

// await is for an object of a kind that is waited for.
func await(kinds map[schema.GroupVersionKind]*bool, object manifest.Object) *awaited {
	kind := object.GroupVersionKind()
	if kinds[kind] == nil {
		kinds[kind] = new(bool)
	}
	return &awaited{missing: noMapping(object), gaveUp: kinds[kind]}
}

// AwaitServed waits until the server has the target's kind, if the same command has
// defined it; what was served some time ago, before it was deleted, does not count. A
// definition that is not there, since it was refused, is not waited for, and one of which
// nothing came, since its names are taken, only once for all its objects.
func (t Target) AwaitServed(ctx context.Context, c *frame.CLI) error {
	switch {
	case t.awaited == nil:
		return nil
	case *t.awaited.gaveUp:
		return t.awaited.missing
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
		_, err := discovery.Served(ctx, t.GVK())
		if _, missing := errors.AsType[*discover.NoKindError](err); !missing {
			return err
		}
		notFound := client.Resource(Definitions, "").Get(ctx, t.Name+"."+t.Group, nil)
		if apierrors.IsNotFound(notFound) || c.Clock.Now().After(until) {
			*t.awaited.gaveUp = true
			return t.awaited.missing
		}
		if err := backoff.Sleep(ctx, c.Clock, servedPause); err != nil {
			return err
		}
		discovery.Distrust()
	}
}

// noMapping names an object whose kind the server does not have.
func noMapping(object manifest.Object) error {
	return fmt.Errorf("resource mapping not found for name: %q namespace: %q from %q: %w",
		object.GetName(), object.GetNamespace(), object.Source, &discover.NoKindError{Kind: object.GroupVersionKind()})
}
