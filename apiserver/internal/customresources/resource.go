package customresources

import (
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// versionStore is a resource with its own way of reading what clients send.
type versionStore interface {
	registry.Resource
	DecodeBody(body []byte) (obj core.Object, strict []error, err error)
}

// resource is one version as it is served: no objects can be created while the
// definition is being deleted.
type resource struct {
	versionStore
	stored *instanceStore
	info   registry.Info
}

// Info implements registry.Resource.
func (r *resource) Info() registry.Info {
	info := r.versionStore.Info()
	info.JSONOnly, info.ListKind, info.StoredAs = true, r.info.ListKind, r.info.StoredAs
	return info
}

var errTerminating = errors.New("create not allowed while custom resource definition is terminating")

// Create implements registry.Resource.
func (r *resource) Create(ctx context.Context, obj core.Object, admit registry.Admission,
	o *metav1.CreateOptions) (registry.Encoded, error) {
	r.stored.creations.underWay.Add(1)
	defer r.stored.creations.underWay.Add(-1)
	if err := r.checkMayCreate(obj.GetName()); err != nil {
		return registry.Encoded{}, err
	}
	return r.versionStore.Create(ctx, obj, admit, o)
}

// Update implements registry.Resource: an apply may create.
func (r *resource) Update(ctx context.Context, target registry.Target, change registry.Transform, admit registry.Admission,
	o *metav1.UpdateOptions) (registry.Encoded, bool, error) {
	creates := false
	defer func() {
		if creates {
			r.stored.creations.underWay.Add(-1)
		}
	}()
	guarded := func(current core.Object) (core.Object, error) {
		if current == nil {
			if !creates {
				creates = true
				r.stored.creations.underWay.Add(1)
			}
			if err := r.checkMayCreate(target.Name); err != nil {
				return nil, err
			}
		}
		return change(current)
	}
	return r.versionStore.Update(ctx, target, guarded, admit, o)
}

func (r *resource) checkMayCreate(name string) error {
	if r.stored.creations.refused.Load() {
		return apierrors.NewForbidden(r.info.GVR().GroupResource(), name, errTerminating)
	}
	return nil
}

// nameOf reads the name of an encoded object.
func nameOf(e registry.Encoded) string {
	var partial struct {
		Metadata struct{ Name string }
	}
	if err := json.Unmarshal(e.JSON, &partial); err != nil {
		return ""
	}
	return partial.Metadata.Name
}
