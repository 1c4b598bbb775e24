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
	if err := c.checkNamespace(); err != nil {
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

// checkNamespace rejects a path with an empty namespace, which a script sends if its
// variable is empty: it would mean all namespaces, and a deletion would remove
// their objects.
func (c *call) checkNamespace() error {
	if c.resource.Namespaced && c.namespace == "" {
		return apierrors.NewBadRequest("Namespace parameter required.")
	}
	return nil
}

// listOrGetWatch answers on the deprecated paths that contain "watch": it follows a
// collection, or the one object that the path names.
func (c *call) listOrGetWatch() error {
	q := c.query()
	o, err := c.listOptions(q)
	if err != nil {
		return err
	}
	if c.name == "" {
		return c.watch(o, q)
	}
	if o.Fields == nil {
		o.Fields = fields.OneTermEqualSelector("metadata.name", c.name)
	} else if selected, one := o.Fields.RequiresExactMatch("metadata.name"); !one || selected != c.name {
		return apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
	}
	return c.watch(o, q)
}
