package handlers

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/admission"
)

// deleteCollection deletes what the selectors select, and answers with the list.
func (c *call) deleteCollection() error {
	if _, err := c.negotiate(); err != nil {
		return err
	}
	if err := c.checkNamespace(); err != nil {
		return err
	}
	list, err := c.listOptions(c.query())
	if err != nil {
		return err
	}
	options, err := c.deleteOptions()
	if err != nil {
		return err
	}
	if ignore := options.IgnoreStoreReadErrorWithClusterBreakingPotential; ignore != nil && *ignore {
		return invalidOptions("DeleteOptions", field.ErrorList{
			field.Invalid(field.NewPath("ignoreStoreReadErrorWithClusterBreakingPotential"), true,
				"is not allowed with DELETECOLLECTION, try again after removing the option"),
		})
	}
	deleted, err := c.store.DeleteCollection(c.ctx, c.namespace, c.admit(admission.Delete, options, options.DryRun), options, list)
	if err != nil {
		return err
	}
	return c.respondList(deleted)
}
