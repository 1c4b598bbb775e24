package handlers

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/audit"
	"kctl/proto/core"
)

// create stores a new object.
func (c *call) create() error {
	if _, err := c.negotiate(); err != nil {
		return err
	}
	if err := c.checkContentType(); err != nil {
		return err
	}
	options, err := c.createOptions()
	if err != nil {
		return err
	}
	obj, err := c.decodeNewObject(options.FieldValidation)
	if err != nil {
		return err
	}
	e, err := c.store.Create(c.ctx, obj, c.trackFields(c.admit(admission.Create, options, options.DryRun), options.FieldManager), options)
	if err != nil {
		return err
	}
	return c.respond(http.StatusCreated, e)
}

// decodeNewObject is the object in the request.
func (c *call) decodeNewObject(fieldValidation string) (core.Object, error) {
	obj := c.store.New()
	if err := c.decodeBody(obj, c.kind, fieldValidation); err != nil {
		return nil, err
	}
	c.auditRequestObject(obj, c.kind, c.store.Default)
	return obj, c.checkNameAndNamespace(obj)
}

// auditRequestObject adds the request's object to the audit event; complete sets the
// defaults.
func (c *call) auditRequestObject(obj core.Object, kind schema.GroupVersionKind, complete func(core.Object)) {
	audit.RequestObject(c.ctx, obj, func() runtime.Object {
		whole := obj.DeepCopyObject().(core.Object)
		complete(whole)
		if whole.GetObjectKind().GroupVersionKind().Kind == "" {
			whole.GetObjectKind().SetGroupVersionKind(kind)
		}
		return whole
	})
}

func (c *call) createOptions() (*metav1.CreateOptions, error) {
	q := c.query()
	options := &metav1.CreateOptions{
		TypeMeta:        optionsType("CreateOptions"),
		DryRun:          q.Values["dryRun"],
		FieldManager:    q.Get("fieldManager"),
		FieldValidation: q.Get("fieldValidation"),
	}
	return options, invalidOptions("CreateOptions", validation.ValidateCreateOptions(options))
}
