package handlers

import (
	"cmp"
	"context"
	"net/http"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// connect hands the request to a subresource that answers it itself.
func (c *call) connect(serve func(ctx context.Context, w http.ResponseWriter, r *http.Request, namespace, name string) error) error {
	if c.subresource == "log" {
		return serve(c.ctx, c.gin.Writer, c.gin.Request, c.namespace, c.name) // it is a read, not a connection
	}
	if c.gin.Request.URL.Query().Has("dryRun") { // the request must not be carried out
		return apierrors.NewBadRequest("dryRun is not supported")
	}
	if c.gin.Request.Method == http.MethodGet && c.reachesIntoPod() {
		if err := c.authorizeAs(c.ctx, "create"); err != nil {
			return err
		}
	}
	c.connectOptions = c.askedOptions()
	admit := c.admit(admission.Connect, nil, nil)
	if err := admit.Mutate(c.ctx, nil, nil); err != nil {
		return err
	}
	if err := admit.Validate(c.ctx, nil, nil); err != nil {
		return err
	}
	r, err := withConnectOptions(c.gin.Request, c.askedOptions(), c.connectOptions)
	if err != nil {
		return err
	}
	return serve(c.ctx, c.gin.Writer, r, c.namespace, c.name)
}

// podAccessSubresources are subresources that let users act inside a pod. Browsers open
// WebSockets with GET, but the right to get is given to users who may only look
// (Kubernetes docs, "AuthorizePodWebsocketUpgradeCreatePermission").
var podAccessSubresources = map[string]bool{"exec": true, "attach": true, "portforward": true}

// reachesIntoPod reports whether the connection leads into a pod, also through its
// kubelet's endpoints.
func (c *call) reachesIntoPod() bool {
	if c.resource != core.Nodes || c.subresource != "proxy" {
		return podAccessSubresources[c.subresource]
	}
	asked := c.gin.Param("path")
	return pathReachesIntoPod(asked) || pathReachesIntoPod(path.Clean("/"+asked)) // as it is, or as the kubelet may read it
}

func pathReachesIntoPod(kubeletPath string) bool {
	first, _, _ := strings.Cut(strings.TrimLeft(kubeletPath, "/"), "/")
	return podAccessSubresources[strings.ToLower(first)]
}

// createSubresource passes an object to a subresource and answers with its result.
func (c *call) createSubresource(sub registry.Subresource) error {
	if _, err := c.mediaType(); err != nil {
		return err
	}
	if err := c.checkContentType(); err != nil {
		return err
	}
	options, err := c.createOptions()
	if err != nil {
		return err
	}
	obj := sub.New()
	c.acceptedKinds = sub.AlsoAccepts
	if err := c.decodeBody(obj, sub.Kind, options.FieldValidation); err != nil {
		return err
	}
	name := c.name
	if typed, ok := obj.(core.Object); ok {
		name = cmp.Or(name, typed.GetName())
		if err := c.prepareSubresource(sub, typed, options); err != nil {
			return err
		}
	}
	answer, err := sub.Create(c.ctx, c.namespace, name, obj, options)
	if err != nil {
		return err
	}
	return c.respondObject(http.StatusCreated, answer)
}

// prepareSubresource completes an object that was sent to a subresource, and admits it.
func (c *call) prepareSubresource(sub registry.Subresource, obj core.Object, options *metav1.CreateOptions) error {
	c.auditRequestObject(obj, sub.Kind, func(core.Object) {})
	if obj.GetNamespace() == "" {
		obj.SetNamespace(c.namespace)
	}
	if sub.FieldTracker != nil {
		sub.FieldTracker.Update(obj, nil, nil, c.fieldManager(options.FieldManager))
	}
	admit := c.admit(admission.Create, options, options.DryRun)
	if err := admit.Mutate(c.ctx, obj, nil); err != nil {
		return err
	}
	return admit.Validate(c.ctx, obj, nil)
}
