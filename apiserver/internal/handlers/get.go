package handlers

import (
	"net/http"

	"k8s.io/apimachinery/pkg/fields"
)

// get answers with one object, or follows it.
func (c *call) get() error {
	if q := c.query(); q.bool("watch") && c.subresource == "" {
		return c.watchOne()
	}
	if _, err := c.negotiate(false); err != nil {
		return err
	}
	e, err := c.store.Get(c.ctx, c.namespace, c.name, c.gin.Query("resourceVersion"))
	if err != nil {
		return err
	}
	return c.respond(http.StatusOK, e)
}

// watchOne is a watch of the collection that selects one name.
func (c *call) watchOne() error {
	o, q, err := c.listOptions()
	if err != nil {
		return err
	}
	name := fields.OneTermEqualSelector("metadata.name", c.name)
	if o.Fields != nil {
		name = fields.AndSelectors(o.Fields, name)
	}
	o.Fields = name
	return c.watch(o, q)
}
