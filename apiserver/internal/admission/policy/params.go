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
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/registry"
)

// maxCached bounds the decoded parameters that are cached.
const maxCached = 1024

// Resources finds the resource of a kind; ok is false if the kind is not
// served.
type Resources func(kind schema.GroupVersionKind) (resource registry.Resource, ok bool)

// parameters are the objects that bindings name, decoded once as long as they
// don't change.
type parameters struct {
	resources Resources

	mu    sync.Mutex
	cache map[paramKey]cachedParam
}

type paramKey struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

type cachedParam struct {
	revision int64
	content  map[string]any
}

func newParameters(resources Resources) *parameters {
	return &parameters{resources: resources, cache: map[paramKey]cachedParam{}}
}

// resourceFor returns the resource of a policy's parameters; nil for a policy
// without any.
func (p *parameters) resourceFor(of *policy) (registry.Resource, error) {
	if of.paramKind == nil {
		return nil, nil
	}
	if found, ok := p.resources(*of.paramKind); ok {
		return found, nil
	}
	return nil, fmt.Errorf("failed to find resource referenced by paramKind: '%s'", of.paramKind)
}

// forBinding returns the parameters of a binding for a request: a single nil if the
// binding has none, and an empty list if the binding is to be skipped.
func (p *parameters) forBinding(ctx context.Context, b *binding, in registry.Resource, a *admission.Attributes) ([]map[string]any, error) {
	if in == nil || b.ref == nil {
		return []map[string]any{nil}, nil
	}
	namespace, err := namespaceOf(b.ref, in, a)
	if err != nil {
		return nil, err
	}
	found, err := p.load(ctx, b, in, namespace)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && ptr.Deref(b.ref.ParameterNotFoundAction, "") != admissionregistrationv1.AllowAction {
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

// load reads from the cache without waiting: a parameter may be slightly
// outdated, as in upstream. One that the cache lacks may have been created just
// now, so that is asked of etcd: a policy must not be skipped for it.
func (p *parameters) load(ctx context.Context, b *binding, in registry.Resource, namespace string) ([]map[string]any, error) {
	var items []registry.Encoded
	if b.selector != nil {
		list, err := in.List(ctx, namespace, registry.ListOptions{Labels: b.selector, ResourceVersion: "0"})
		if err != nil {
			return nil, fmt.Errorf("list params: %w", err)
		}
		items = list.Items
	} else {
		item, err := in.Get(ctx, namespace, b.ref.Name, "0")
		if apierrors.IsNotFound(err) {
			item, err = in.Get(ctx, namespace, b.ref.Name, "")
		}
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
		content, err := p.decode(item, paramKey{kind: in.Info().GVK(), namespace: namespace, name: b.ref.Name})
		if err != nil {
			return nil, err
		}
		out = append(out, content)
	}
	return out, nil
}

// decode decodes a parameter. Named ones are cached; those found by a selector
// have no name here.
func (p *parameters) decode(item registry.Encoded, at paramKey) (map[string]any, error) {
	if at.name != "" {
		p.mu.Lock()
		known, ok := p.cache[at]
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
	if len(p.cache) >= maxCached {
		clear(p.cache)
	}
	p.cache[at] = cachedParam{item.Revision, content}
	return content, nil
}
