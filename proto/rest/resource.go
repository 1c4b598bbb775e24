package rest

import (
	"context"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// Resource is one resource of the API, in one namespace or in all.
type Resource struct {
	client    *Client
	resource  core.Resource
	namespace string
}

// Resource returns r in namespace; "" is all namespaces.
func (c *Client) Resource(r core.Resource, namespace string) Resource {
	return Resource{client: c, resource: r, namespace: namespace}
}

// path is the address of name ("" for the collection) with the call's
// subresource. It notes in the call what that is about.
func (r Resource) path(name string, call *call) string {
	call.resource, call.name = r.resource.GVR().GroupResource(), name
	path := r.resource.Path(r.namespace, name)
	if call.subresource != "" {
		path += "/" + call.subresource
	}
	return path
}

// do is Client.Do for name.
func (r Resource) do(ctx context.Context, method, name string, body, into any, opts []Option) error {
	call := newCall(opts)
	return r.client.do(ctx, method, r.path(name, call), body, into, call)
}

// Name is what the resource is called in the API and in errors.
func (r Resource) Name() string { return r.resource.Name }

// Kind is the kind of its objects: Pod.
func (r Resource) Kind() string { return r.resource.Kind }

// Get reads the object called name.
func (r Resource) Get(ctx context.Context, name string, into any, opts ...Option) error {
	if name == "" {
		return fmt.Errorf("get %s: no name given", r.resource.Name)
	}
	return r.do(ctx, http.MethodGet, name, nil, into, opts)
}

// List reads the collection.
func (r Resource) List(ctx context.Context, into any, opts ...Option) error {
	return r.do(ctx, http.MethodGet, "", nil, into, opts)
}

// Create posts obj to the collection; with Sub, to the subresource of the object whose
// name obj carries.
func (r Resource) Create(ctx context.Context, obj, into any, opts ...Option) error {
	name, call := "", newCall(opts)
	if call.subresource != "" {
		meta, ok := obj.(metav1.Object)
		if !ok || meta.GetName() == "" {
			return fmt.Errorf("create a subresource of %s: the object names no %s", r.resource.Name, r.resource.Kind)
		}
		name = meta.GetName()
	}
	return r.client.do(ctx, http.MethodPost, r.path(name, call), obj, into, call)
}

// Update puts obj in place of the object called name.
func (r Resource) Update(ctx context.Context, name string, obj, into any, opts ...Option) error {
	return r.do(ctx, http.MethodPut, name, obj, into, opts)
}

// Patch changes the object called name by a patch of the given kind.
func (r Resource) Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, into any, opts ...Option) error {
	opts = append(opts, ContentType(string(kind)))
	return r.do(ctx, http.MethodPatch, name, patch, into, opts)
}

// Delete deletes the object called name; options may be nil.
func (r Resource) Delete(ctx context.Context, name string, options *metav1.DeleteOptions, into any, opts ...Option) error {
	if name == "" {
		return fmt.Errorf("delete %s: no name given", r.resource.Name)
	}
	return r.do(ctx, http.MethodDelete, name, options, into, opts)
}

// DeleteCollection deletes every object that the options select.
func (r Resource) DeleteCollection(ctx context.Context, options *metav1.DeleteOptions, into any, opts ...Option) error {
	return r.do(ctx, http.MethodDelete, "", options, into, opts)
}

// Stream opens a GET that lasts, such as a followed log. The caller closes it.
func (r Resource) Stream(ctx context.Context, name string, opts ...Option) (io.ReadCloser, error) {
	call := newCall(opts)
	resp, err := r.client.send(ctx, r.client.http, http.MethodGet, r.path(name, call), nil, call)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Watch opens a watch of the collection. Give the starting point as
// Query("resourceVersion", …). The caller closes the stream.
func (r Resource) Watch(ctx context.Context, opts ...Option) (*Stream, error) {
	call := newCall(append(opts, Query("watch", "true")))
	resp, err := r.client.send(ctx, r.client.http, http.MethodGet, r.path("", call), nil, call)
	if err != nil {
		return nil, err
	}
	return newStream(resp.Body), nil
}
