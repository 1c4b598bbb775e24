package handlers

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
)

// get answers with one object.
func (c *call) get() error {
	if err := c.negotiateRead(false); err != nil {
		return err
	}
	q := c.query()
	if q.bool("export") {
		return apierrors.NewBadRequest("the parameter export is no longer supported")
	}
	e, err := c.store.Get(c.ctx, c.namespace, c.name, q.Get("resourceVersion"))
	if err != nil {
		return err
	}
	return c.respond(http.StatusOK, e)
}

// watchPath answers on the deprecated paths that contain "watch": it follows a
// collection, or the one object that the path names.
func (c *call) watchPath() error {
	o, q, err := c.listOptions()
	if err != nil {
		return err
	}
	if c.name == "" {
		return c.watch(o, q)
	}
	name := fields.OneTermEqualSelector("metadata.name", c.name)
	if o.Fields != nil {
		name = fields.AndSelectors(o.Fields, name)
	}
	o.Fields = name
	return c.watch(o, q)
}
