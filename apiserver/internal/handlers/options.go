package handlers

import (
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
)

// query reads typed values from a query and keeps the first error.
type query struct {
	url.Values
	err error
}

func (q *query) bool(name string) bool { return request.Flag(q.Values, name) }

func (q *query) int64(name string) *int64 {
	if q.err != nil {
		return nil
	}
	value, err := request.Number(q.Values, name)
	if err != nil {
		q.err = apierrors.NewBadRequest(name + ": " + err.Error())
	}
	return value
}

func (c *call) query() *query { return &query{Values: c.gin.Request.URL.Query()} }

// listOptions reads a collection's options. timeoutSeconds is checked with them, and left for
// a watch to read.
func (c *call) listOptions(q *query) (registry.ListOptions, error) {
	o := registry.ListOptions{
		ResourceVersion:      q.Get("resourceVersion"),
		ResourceVersionMatch: metav1.ResourceVersionMatch(q.Get("resourceVersionMatch")),
		Continue:             q.Get("continue"),
		AllowBookmarks:       q.bool("allowWatchBookmarks"),
	}
	if limit := q.int64("limit"); limit != nil {
		o.Limit = max(*limit, 0)
	}
	q.int64("timeoutSeconds")
	if q.Has("sendInitialEvents") {
		send := q.bool("sendInitialEvents")
		o.SendInitialEvents = &send
	}
	if text := q.Get("labelSelector"); text != "" && q.err == nil {
		o.Labels, q.err = labels.Parse(text)
	}
	if text := q.Get("fieldSelector"); text != "" && q.err == nil {
		o.Fields, q.err = c.fieldSelector(text)
	}
	if q.err != nil && apierrors.ReasonForError(q.err) == metav1.StatusReasonUnknown {
		q.err = apierrors.NewBadRequest(q.err.Error())
	}
	return o, q.err
}

// fieldSelector is the request's own, if it was parsed on arrival: a watch would hold it
// twice, and it may be long.
func (c *call) fieldSelector(text string) (fields.Selector, error) {
	if info := request.InfoFrom(c.ctx); info != nil && info.Fields != nil {
		return info.Fields, nil
	}
	return fields.ParseSelector(text)
}

// optionsType is the type of options of the given kind.
func optionsType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: metav1.GroupName + "/v1"}
}

// invalidOptions refuses options of the given kind.
func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}
