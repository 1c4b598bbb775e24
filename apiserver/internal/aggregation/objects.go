package aggregation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// objects are those of one resource of another server. Only their metadata is
// read and changed.
type objects struct {
	aggregator *Aggregator
	remote     *remote
	info       registry.Info
}

var _ registry.Objects = (*objects)(nil)

const (
	// metadataOnly asks for metadata only; servers that don't support it send
	// more, which is ignored.
	metadataOnly     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	metadataOnlyList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
	pageSize         = 500
	// maxObjects bounds the number of objects of one resource.
	maxObjects = 200_000
)

// Info implements registry.Objects.
func (o *objects) Info() registry.Info { return o.info }

// Decode implements registry.Objects.
func (o *objects) Decode(e registry.Encoded) (core.Object, error) { return e.Object, nil }

func (o *objects) path(namespace, name string) string {
	return o.info.Path(url.PathEscape(namespace), url.PathEscape(name))
}

// request sends a request, and turns a refusal into a status error.
func (o *objects) request(ctx context.Context, q remoteRequest, name string, into any) error {
	q.user = aggregatorUser
	response, body, err := o.aggregator.send(ctx, o.remote, q)
	if err != nil {
		return refusalError(response, body, name, err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decode the answer for %s: %w", q.path, err)
	}
	return nil
}

// refusalError is the error for a refusal. An object counts as not found only if the
// server says so about the object: a 404 for the path itself proves nothing.
func refusalError(response *http.Response, body []byte, name string, err error) error {
	if response == nil {
		return err
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" || status.Status != metav1.StatusFailure {
		return err
	}
	if status.Reason == metav1.StatusReasonNotFound && (status.Details == nil || status.Details.Name != name) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// Get implements registry.Objects. The result is always current.
func (o *objects) Get(ctx context.Context, namespace, name, _ string) (registry.Encoded, error) {
	found, err := o.get(ctx, namespace, name)
	if err != nil {
		return registry.Encoded{}, err
	}
	return registry.Encoded{Object: found}, nil
}

func (o *objects) get(ctx context.Context, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadata{}
	if err := o.request(ctx, remoteRequest{path: o.path(namespace, name), accept: metadataOnly}, name, found); err != nil {
		return nil, err
	}
	if found.Name != name || found.UID == "" {
		return nil, fmt.Errorf("the answer for %s is of %q, with the uid %q", o.path(namespace, name), found.Name, found.UID)
	}
	return found, nil
}

// List implements registry.Objects, without selectors and in one piece. It waits
// until the server is available.
func (o *objects) List(ctx context.Context, namespace string, _ registry.ListOptions) (registry.List, error) {
	if err := o.aggregator.untilAvailable(ctx, o.remote); err != nil {
		return registry.List{}, err
	}
	var out registry.List
	err := o.pages(ctx, namespace, func(page *metav1.PartialObjectMetadataList) error {
		for i := range page.Items {
			out.Items = append(out.Items, registry.Encoded{Object: &page.Items[i]})
		}
		out.ResourceVersion = page.ResourceVersion
		return nil
	})
	if err != nil {
		return registry.List{}, err
	}
	return out, nil
}

// pages lists the objects, and calls each for every page.
func (o *objects) pages(ctx context.Context, namespace string, each func(page *metav1.PartialObjectMetadataList) error) error {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for found := 0; ; {
		var page metav1.PartialObjectMetadataList
		q := remoteRequest{path: o.path(namespace, "") + "?" + query.Encode(), accept: metadataOnlyList, timeout: collectionTimeout}
		if err := o.request(ctx, q, "", &page); err != nil {
			return fmt.Errorf("list %s: %w", o.info.Name, err)
		}
		if found += len(page.Items); found > maxObjects {
			return fmt.Errorf("more than %d %s exist", maxObjects, o.info.Name)
		}
		if err := each(&page); err != nil {
			return err
		}
		if len(page.Items) == 0 || page.Continue == "" {
			return nil
		}
		query.Set("continue", page.Continue)
	}
}

// Update implements registry.Objects, for owners and finalizers. A concurrent
// change is a conflict.
func (o *objects) Update(ctx context.Context, target registry.Target, change registry.Transform, admit registry.Admission,
	_ *metav1.UpdateOptions) (registry.Encoded, bool, error) {
	before, err := o.get(ctx, target.Namespace, target.Name)
	if err != nil {
		return registry.Encoded{}, false, err
	}
	changed, err := change(before.DeepCopy())
	if err != nil {
		return registry.Encoded{}, false, err
	}
	if reflect.DeepEqual(changed.GetOwnerReferences(), before.OwnerReferences) &&
		reflect.DeepEqual(changed.GetFinalizers(), before.Finalizers) {
		return registry.Encoded{Object: before}, false, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": before.UID, "resourceVersion": before.ResourceVersion,
		"ownerReferences": changed.GetOwnerReferences(), "finalizers": changed.GetFinalizers(),
	}})
	if err != nil {
		return registry.Encoded{}, false, err
	}
	now := &metav1.PartialObjectMetadata{}
	query := url.Values{"fieldManager": {cmp.Or(admit.FieldManager, registry.ServerManager)}}
	err = o.request(ctx, remoteRequest{
		method: http.MethodPatch, path: o.path(target.Namespace, target.Name) + "?" + query.Encode(), accept: metadataOnly, body: patch,
		media: "application/merge-patch+json",
	}, target.Name, now)
	return registry.Encoded{Object: now}, false, err
}

// Delete implements registry.Objects.
func (o *objects) Delete(ctx context.Context, namespace, name string, _ registry.Admission,
	options *metav1.DeleteOptions) (registry.Encoded, bool, error) {
	body, err := json.Marshal(options)
	if err != nil {
		return registry.Encoded{}, false, err
	}
	last := &metav1.PartialObjectMetadata{}
	err = o.request(ctx, remoteRequest{
		method: http.MethodDelete, path: o.path(namespace, name), accept: metadataOnly, body: body, media: "application/json",
	}, name, last)
	return registry.Encoded{Object: last}, false, err
}
