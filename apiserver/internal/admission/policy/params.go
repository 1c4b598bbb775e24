package policy

import (
	"bytes"
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

// maxCached bounds the cached parameters, by the size of their JSON.
const maxCached = 8 << 20

// Resources finds the resource of a kind; ok is false if the kind is not
// served.
type Resources func(kind schema.GroupVersionKind) (resource registry.Resource, ok bool)

// parameters are the objects to which bindings refer, decoded once as long as they
// don't change.
type parameters struct {
	resources Resources

	mu    sync.Mutex
	cache map[reference]decoded
	size  int
}

// reference is how a binding refers to parameters: by a name or by a selector.
type reference struct {
	kind                      schema.GroupVersionKind
	namespace, name, selector string
}

// decoded are the parameters that a reference last found, by revision. They are not changed.
type decoded struct {
	params map[int64]param
	size   int
}

type param struct {
	json    []byte
	content map[string]any
}

func newParameters(resources Resources) *parameters {
	return &parameters{resources: resources, cache: map[reference]decoded{}}
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
	at := reference{kind: in.Info().GVK(), namespace: namespace, name: b.ref.Name}
	if b.selector != nil {
		list, err := in.List(ctx, namespace, registry.ListOptions{Labels: b.selector, ResourceVersion: "0"})
		if err != nil {
			return nil, fmt.Errorf("list params: %w", err)
		}
		at.selector = b.selector.String()
		return p.decode(list.Items, at)
	}
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
	return p.decode([]registry.Encoded{item}, at)
}

// decode decodes what a reference finds, but for what it has found before.
func (p *parameters) decode(items []registry.Encoded, at reference) ([]map[string]any, error) {
	p.mu.Lock()
	known := p.cache[at].params
	p.mu.Unlock()
	out := make([]map[string]any, len(items))
	now := decoded{params: make(map[int64]param, len(items))}
	changed := len(items) != len(known)
	for i, item := range items {
		one, ok := known[item.Revision]
		if !ok || !bytes.Equal(one.json, item.JSON) {
			one, changed = param{json: item.JSON}, true
			if err := utiljson.Unmarshal(item.JSON, &one.content); err != nil {
				return nil, fmt.Errorf("decode params: %w", err)
			}
		}
		out[i], now.params[item.Revision] = one.content, one
		now.size += len(item.JSON)
	}
	if changed {
		p.keep(at, now)
	}
	return out, nil
}

func (p *parameters) keep(at reference, now decoded) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size -= p.cache[at].size
	delete(p.cache, at)
	if now.size > maxCached || len(now.params) == 0 {
		return
	}
	if p.size+now.size > maxCached {
		clear(p.cache)
		p.size = 0
	}
	p.cache[at] = now
	p.size += now.size
}
