package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/registry"
)

// maxKept bounds the decoded parameters that are kept for the next request.
const maxKept = 1024

// Resources finds the resource whose objects are of a kind; ok is false where
// no such kind is served.
type Resources func(kind schema.GroupVersionKind) (resource registry.Resource, ok bool)

// parameters are the objects that bindings name, decoded once for as long as
// they stay as they are.
type parameters struct {
	resources Resources

	mu   sync.Mutex
	kept map[place]kept
}

type place struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

type kept struct {
	revision int64
	content  map[string]any
}

func newParameters(resources Resources) *parameters {
	return &parameters{resources: resources, kept: map[place]kept{}}
}

// resource finds where the parameters of a policy are; nil for a policy that has
// none.
func (p *parameters) resource(of *policy) (registry.Resource, error) {
	if of.paramKind == nil {
		return nil, nil
	}
	if found, ok := p.resources(*of.paramKind); ok {
		return found, nil
	}
	return nil, fmt.Errorf("failed to find resource referenced by paramKind: '%s'", of.paramKind)
}

// of returns the parameters of a binding for a request: one that is nil where
// the binding has none, and none at all where it is to be passed over.
func (p *parameters) of(ctx context.Context, b *binding, in registry.Resource, a *admission.Attributes) ([]map[string]any, error) {
	if in == nil || b.ref == nil {
		return []map[string]any{nil}, nil
	}
	namespace, err := namespaceOf(b.ref, in, a)
	if err != nil {
		return nil, err
	}
	found, err := p.read(ctx, b, in, namespace)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && (b.ref.ParameterNotFoundAction == nil || *b.ref.ParameterNotFoundAction != admissionregistrationv1.AllowAction) {
		return nil, errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	return found, nil
}

func namespaceOf(ref *admissionregistrationv1.ParamRef, in registry.Resource, a *admission.Attributes) (string, error) {
	if !in.Info().Namespaced {
		if ref.Namespace != "" {
			return "", errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
		}
		return "", nil
	}
	if ref.Namespace != "" {
		return ref.Namespace, nil
	}
	if own := match.NamespaceOf(a); own != "" {
		return own, nil
	}
	return "", errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
}

// read reads from the cache, as it is: a parameter may be a moment old, as it
// may be with upstream.
func (p *parameters) read(ctx context.Context, b *binding, in registry.Resource, namespace string) ([]map[string]any, error) {
	var items []registry.Encoded
	if b.selector != nil {
		list, err := in.List(ctx, namespace, registry.ListOptions{Labels: b.selector, ResourceVersion: "0"})
		if err != nil {
			return nil, fmt.Errorf("list params: %w", err)
		}
		items = list.Items
	} else {
		item, err := in.Get(ctx, namespace, b.ref.Name, "0")
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("get params: %w", err)
		}
		items = []registry.Encoded{item}
	}
	out := make([]map[string]any, 0, len(items))
	for _, item := range items {
		content, err := p.decode(item, place{kind: in.Info().GVK(), namespace: namespace, name: b.ref.Name})
		if err != nil {
			return nil, err
		}
		out = append(out, content)
	}
	return out, nil
}

// decode reads a parameter. Those that are named are kept; what a selector finds
// has no name here.
func (p *parameters) decode(item registry.Encoded, at place) (map[string]any, error) {
	if at.name != "" {
		p.mu.Lock()
		known, ok := p.kept[at]
		p.mu.Unlock()
		if ok && known.revision == item.Revision {
			return known.content, nil
		}
	}
	var content map[string]any
	if err := utiljson.Unmarshal(item.JSON, &content); err != nil {
		return nil, fmt.Errorf("decode params: %w", err)
	}
	if at.name == "" {
		return content, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.kept) >= maxKept {
		clear(p.kept)
	}
	p.kept[at] = kept{item.Revision, content}
	return content, nil
}
