package handlers

// listOrWatch answers with a collection, or follows it.
func (c *call) listOrWatch() error {
	if !c.query().bool("watch") {
		if _, err := c.negotiate(false); err != nil {
			return err
		}
	}
	o, q, err := c.listOptions()
	if err != nil {
		return err
	}
	if q.bool("watch") {
		return c.watch(o, q)
	}
	if q.err != nil {
		return q.err
	}
	if err := c.negotiateRead(true); err != nil {
		return err
	}
	list, err := c.store.List(c.ctx, c.namespace, o)
	if err != nil {
		return err
	}
	return c.respondList(list)
}
