package rest

import (
	"cmp"
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

// call is a call about the object called name, or the collection ("").
func (r Resource) call(method, name string, body any, opts []Option) *call {
	c := newCall(method, body, opts)
	r.address(c, name)
	return c
}

// address gives a call the path of name, with the call's subresource.
func (r Resource) address(c *call, name string) {
	c.resource, c.name = r.resource.GVR().GroupResource(), name
	c.path = r.resource.Path(r.namespace, name)
	if c.subresource != "" {
		c.path += "/" + c.subresource
	}
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
	return r.client.do(ctx, r.call(http.MethodGet, name, nil, opts), into)
}

// List reads the collection.
func (r Resource) List(ctx context.Context, into any, opts ...Option) error {
	return r.client.do(ctx, r.call(http.MethodGet, "", nil, opts), into)
}

// Create posts obj to the collection; with Sub, to the subresource of the object whose
// name obj carries.
func (r Resource) Create(ctx context.Context, obj, into any, opts ...Option) error {
	name, call := "", newCall(http.MethodPost, obj, opts)
	if call.subresource != "" {
		meta, ok := obj.(metav1.Object)
		if !ok || meta.GetName() == "" {
			return fmt.Errorf("create a subresource of %s: the object lacks the name of the %s", r.resource.Name, r.resource.Kind)
		}
		name = meta.GetName()
	}
	r.address(call, name)
	return r.client.do(ctx, call, into)
}

// Update puts obj in place of the object called name.
func (r Resource) Update(ctx context.Context, name string, obj, into any, opts ...Option) error {
	return r.client.do(ctx, r.call(http.MethodPut, name, obj, opts), into)
}

// Patch changes the object called name by a patch of the given kind.
func (r Resource) Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, into any, opts ...Option) error {
	opts = append(opts, ContentType(string(kind)))
	return r.client.do(ctx, r.call(http.MethodPatch, name, patch, opts), into)
}

// Delete deletes the object called name; options may be nil.
func (r Resource) Delete(ctx context.Context, name string, options *metav1.DeleteOptions, into any, opts ...Option) error {
	if name == "" {
		return fmt.Errorf("delete %s: no name given", r.resource.Name)
	}
	return r.client.do(ctx, r.call(http.MethodDelete, name, options, opts), into)
}

// DeleteCollection deletes every object that the options select.
func (r Resource) DeleteCollection(ctx context.Context, options *metav1.DeleteOptions, into any, opts ...Option) error {
	return r.client.do(ctx, r.call(http.MethodDelete, "", options, opts), into)
}

// Stream opens a GET that lasts, such as a followed log. The caller closes it.
func (r Resource) Stream(ctx context.Context, name string, opts ...Option) (io.ReadCloser, error) {
	resp, err := r.client.send(ctx, r.client.http, r.call(http.MethodGet, name, nil, opts))
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Watch opens a watch of the collection. Give the starting point as
// Query("resourceVersion", …). The caller closes the stream.
func (r Resource) Watch(ctx context.Context, opts ...Option) (*Stream, error) {
	call := r.call(http.MethodGet, "", nil, append(opts, Query("watch", "true")))
	resp, err := r.client.send(ctx, r.client.http, call)
	if err != nil {
		return nil, err
	}
	return newStream(resp.Body, cmp.Or(call.lineBuffer, lineBuffer)), nil
}
