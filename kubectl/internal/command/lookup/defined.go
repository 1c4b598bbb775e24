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

// definedAbove finds the resource of a kind that the server does not have yet in the
// definitions among the objects, which are sent before those of the kind.
func definedAbove(objects []manifest.Object, kind schema.GroupVersionKind) (found discover.Resource, ok bool) {
	for _, object := range objects {
		if object.GroupVersionKind() != Definitions.GVK() {
			continue
		}
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

// AwaitServed waits until the server has the target's kind, if the same command has
// defined it; what was served some time ago, before it was deleted, does not count. A
// definition that is not there, since it was refused, is not waited for.
func (t Target) AwaitServed(ctx context.Context, c *frame.CLI) error {
	if t.unserved == nil {
		return nil
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
			return t.unserved
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
