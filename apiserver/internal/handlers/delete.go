package handlers

import (
	"encoding/json"
	"fmt"
	"net/http"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/bodylimit"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/scheme"
)

// delete deletes an object or marks it as being deleted. For an object that is
// gone the answer is a Status; one that stays for now is itself the answer.
func (c *call) delete() error {
	if _, err := c.negotiate(); err != nil {
		return err
	}
	if err := c.checkNamespace(); err != nil {
		return err
	}
	options, err := c.deleteOptions()
	if err != nil {
		return err
	}
	if ptr.Deref(options.IgnoreStoreReadErrorWithClusterBreakingPotential, false) {
		audit.Annotate(c.ctx, "apiserver.k8s.io/unsafe-delete-ignore-read-error", "")
		if err := c.authorizeAs(c.ctx, "unsafe-delete-ignore-read-errors"); err != nil {
			return err
		}
	}
	e, gone, err := c.store.Delete(c.ctx, c.namespace, c.name, c.admit(admission.Delete, options, options.DryRun), options)
	if err != nil {
		return err
	}
	if e.JSON == nil {
		return c.respondObject(http.StatusOK, &metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusSuccess,
			Code:     http.StatusOK,
			Details:  &metav1.StatusDetails{Name: c.name, Kind: c.resource.Kind},
		})
	}
	switch {
	case !gone && cascades(options):
		return c.respond(http.StatusAccepted, e)
	case !gone || c.store.Info().ReturnDeletedObject:
		return c.respond(http.StatusOK, e)
	}
	return c.respondDeleted(e)
}

// cascades reports whether the request asks, in the way of older clients, for dependents
// to go, too: only then does upstream answer with 202 if the object still exists.
func cascades(options *metav1.DeleteOptions) bool {
	orphan := options.OrphanDependents //nolint:staticcheck // older clients send it
	return orphan != nil && !*orphan
}

func (c *call) respondDeleted(e registry.Encoded) error {
	// Read only the metadata that the answer shows: the rest may be unreadable, and
	// the reason for the deletion.
	var partial struct {
		Metadata struct {
			Name string    `json:"name"`
			UID  types.UID `json:"uid"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(e.JSON, &partial); err != nil {
		return fmt.Errorf("decode what was deleted: %w", err)
	}
	return c.respondObject(http.StatusOK, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name:  partial.Metadata.Name,
			Group: c.resource.Group,
			Kind:  c.resource.Name,
			UID:   partial.Metadata.UID,
		},
	})
}

// deleteOptions come in the body, or otherwise in the query.
func (c *call) deleteOptions() (*metav1.DeleteOptions, error) {
	body, err := c.readBody()
	if err != nil {
		return nil, err
	}
	options := &metav1.DeleteOptions{}
	if len(body) > 0 {
		err = c.decodeOptions(body, options)
	} else {
		err = c.optionsFromQuery(options)
	}
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		audit.RequestObject(c.ctx, nil, func() runtime.Object { return auditedOptions(*options) })
	}
	//nolint:staticcheck // older clients send it
	if c.resource.Name == "jobs" && c.resource.Group == batchv1.GroupName && options.PropagationPolicy == nil &&
		options.OrphanDependents == nil {
		request.Warn(c.ctx,
			"child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "+
				"propagationPolicy=Orphan to suppress this warning")
	}
	options.TypeMeta = optionsType("DeleteOptions")
	return options, invalidOptions("DeleteOptions", validation.ValidateDeleteOptions(options))
}

// auditedOptions are a deletion's options as audit events show them: upstream
// encodes its internal version.
func auditedOptions(options metav1.DeleteOptions) *metav1.DeleteOptions {
	options.TypeMeta = metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: metav1.GroupName + "/" + runtime.APIVersionInternal}
	return &options
}

// decodeOptions reads options of the resource's own group, of the core group or
// of meta: clients send all three.
func (c *call) decodeOptions(body []byte, options *metav1.DeleteOptions) error {
	kind := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	switch media := c.contentType(); media {
	case runtime.ContentTypeJSON:
		return optionsFromJSON(body, options)
	case runtime.ContentTypeYAML:
		text, err := bodylimit.YAMLToJSON(body, c.MaxBody)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return optionsFromJSON(text, options)
	case runtime.ContentTypeProtobuf:
		if err := bodylimit.Protobuf(body, kind); err != nil {
			return err
		}
		if _, _, err := scheme.Protobuf.Decode(body, &kind, options); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return nil
	default:
		return unsupportedMediaType(media, "", runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf)
	}
}

func optionsFromJSON(text []byte, options *metav1.DeleteOptions) error {
	if err := bodylimit.JSON(text); err != nil {
		return err
	}
	var sent metav1.TypeMeta
	if err := json.Unmarshal(text, &sent); err != nil {
		return apierrors.NewBadRequest("couldn't get version/kind; json parse error: " + err.Error())
	}
	version, err := schema.ParseGroupVersion(sent.APIVersion)
	if err == nil && sent.Kind != "" && sent.Kind != "DeleteOptions" {
		err = runtime.NewNotRegisteredErrForKind(schemeName, version.WithKind(sent.Kind))
	}
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, options)
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

func (c *call) optionsFromQuery(options *metav1.DeleteOptions) error {
	q := c.query()
	options.GracePeriodSeconds = q.int64("gracePeriodSeconds")
	options.DryRun = q.Values["dryRun"]
	if q.Has("propagationPolicy") {
		policy := metav1.DeletionPropagation(q.Get("propagationPolicy"))
		options.PropagationPolicy = &policy
	}
	if uid, version := types.UID(q.Get("uid")), q.Get("resourceVersion"); uid != "" || version != "" {
		options.Preconditions = &metav1.Preconditions{}
		if uid != "" {
			options.Preconditions.UID = &uid
		}
		if version != "" {
			options.Preconditions.ResourceVersion = &version
		}
	}
	if q.Has("ignoreStoreReadErrorWithClusterBreakingPotential") {
		ignore := q.bool("ignoreStoreReadErrorWithClusterBreakingPotential")
		options.IgnoreStoreReadErrorWithClusterBreakingPotential = &ignore
	}
	if q.Has("orphanDependents") {
		orphan := q.bool("orphanDependents")
		options.OrphanDependents = &orphan //nolint:staticcheck // older clients send it
	}
	return q.err
}
