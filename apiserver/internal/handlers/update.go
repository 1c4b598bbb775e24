package handlers

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// update replaces the stored object.
func (c *call) update() error {
	if _, err := c.negotiate(); err != nil {
		return err
	}
	options, err := c.updateOptions()
	if err != nil {
		return err
	}
	obj, err := c.decodeNewObject(options.FieldValidation)
	if err != nil {
		return err
	}
	registry.DropDuplicateOwners(c.ctx, obj, "")
	change := func(core.Object) (core.Object, error) {
		// The registry may call this again, and modifies what it gets.
		return obj.DeepCopyObject().(core.Object), nil
	}
	admit := c.trackFields(c.admit(admission.Update, options, options.DryRun), options.FieldManager)
	e, created, err := c.store.Update(c.ctx, c.target(), change, admit, options)
	return c.respondUpdated(e, created, err)
}

// respondUpdated answers with what an update has stored.
func (c *call) respondUpdated(e registry.Encoded, created bool, err error) error {
	switch {
	case err != nil:
		return err
	case created:
		return c.respond(http.StatusCreated, e)
	}
	return c.respond(http.StatusOK, e)
}

func (c *call) updateOptions() (*metav1.UpdateOptions, error) {
	q := c.query()
	options := &metav1.UpdateOptions{
		TypeMeta:        optionsType("UpdateOptions"),
		DryRun:          q.Values["dryRun"],
		FieldManager:    q.Get("fieldManager"),
		FieldValidation: q.Get("fieldValidation"),
	}
	return options, invalidOptions("UpdateOptions", validation.ValidateUpdateOptions(options))
}
