package handlers

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// patchedFields are the fields of an object that a patch names. The others are left
// alone: when a kubelet patches a pod's status, the pod's spec is not converted
// back and forth.
type patchedFields struct {
	fields map[string]bool
	// managedFields: the patch may change metadata.managedFields.
	managedFields bool
}

// patchedFieldsOf are the fields that are in a decoded merge patch or strategic merge patch; nil,
// for unknown, if it has a directive for the whole object.
func patchedFieldsOf(patch map[string]any) *patchedFields {
	p := &patchedFields{fields: map[string]bool{}}
	for name, value := range patch {
		if strings.HasPrefix(name, "$") {
			return nil
		}
		p.fields[name] = true
		if name == "metadata" {
			p.managedFields = touchesManagedFields(value)
		}
	}
	return p
}

func touchesManagedFields(metadata any) bool {
	fields, ok := metadata.(map[string]any)
	if !ok {
		return true
	}
	for name := range fields {
		if name == "managedFields" || strings.HasPrefix(name, "$") {
			return true
		}
	}
	return false
}

// setAside removes from obj what the patch leaves alone. The function it
// returns puts that into the patched object, which is of the same type.
func (p *patchedFields) setAside(obj core.Object) (putBack func(patched core.Object)) {
	whole := reflect.ValueOf(obj).Elem()
	aside := map[int]reflect.Value{}
	for i := range whole.NumField() {
		name, _, _ := strings.Cut(whole.Type().Field(i).Tag.Get("json"), ",")
		if name == "" || name == "metadata" || p.fields[name] {
			continue
		}
		field := whole.Field(i)
		aside[i] = reflect.ValueOf(field.Interface())
		field.SetZero()
	}
	var entries []metav1.ManagedFieldsEntry
	if !p.managedFields {
		entries = obj.GetManagedFields()
		obj.SetManagedFields(nil)
	}
	return func(patched core.Object) {
		into := reflect.ValueOf(patched).Elem()
		for i, field := range aside {
			into.Field(i).Set(field)
		}
		if !p.managedFields {
			patched.SetManagedFields(entries)
		}
	}
}
