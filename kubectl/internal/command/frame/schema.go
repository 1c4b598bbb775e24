package frame

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"kctl/kubectl/internal/schema"
	"kctl/proto/core"
)

// PatchSchema says how the lists of a kind are merged: by its Go type if kctl
// has one, and otherwise by the server's schema. Nil is for kinds that are
// merged as plain JSON, such as custom resources.
func (c *CLI) PatchSchema(ctx context.Context, kind apischema.GroupVersionKind) (strategicpatch.LookupPatchMeta, error) {
	object, err := core.Scheme.New(kind)
	if err == nil {
		meta, err := strategicpatch.NewPatchMetaFromStruct(object)
		return meta, err
	}
	if !runtime.IsNotRegisteredError(err) {
		return nil, err
	}
	client, err := c.Server()
	if err != nil {
		return nil, err
	}
	gv := kind.GroupVersion()
	document, known := c.documents[gv]
	if !known {
		document, err = schema.Load(ctx, client, gv)
		if err != nil && !apierrors.IsNotFound(errors.Unwrap(err)) {
			return nil, err
		}
		if c.documents == nil {
			c.documents = map[apischema.GroupVersion]*schema.Document{}
		}
		c.documents[gv] = document
	}
	if document == nil {
		return nil, nil
	}
	if meta := document.Merging(kind); meta != nil {
		return meta, nil
	}
	return nil, nil
}
