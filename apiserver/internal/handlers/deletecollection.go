package handlers

import "kctl/apiserver/internal/admission"

// deleteCollection deletes what the selectors choose, and answers with it.
func (c *call) deleteCollection() error {
	list, q, err := c.listOptions()
	if err != nil {
		return err
	}
	if q.err != nil {
		return q.err
	}
	options, err := c.deleteOptions()
	if err != nil {
		return err
	}
	if _, err := c.negotiate(false); err != nil {
		return err
	}
	deleted, err := c.store.DeleteCollection(c.ctx, c.namespace, c.admit(admission.Delete, options, options.DryRun), options, list)
	if err != nil {
		return err
	}
	return c.respondList(deleted)
}
