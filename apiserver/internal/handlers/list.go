package handlers

// listOrWatch answers with a collection, or follows it.
func (c *call) listOrWatch() error {
	q := c.query()
	watches := q.bool("watch")
	if !watches {
		if _, err := c.negotiate(); err != nil {
			return err
		}
	}
	o, err := c.listOptions(q)
	if err != nil {
		return err
	}
	if watches {
		return c.watch(o, q)
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
