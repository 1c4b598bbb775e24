package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/bodylimit"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

// readBody reads the request's body, up to the limit.
func (c *call) readBody() ([]byte, error) {
	size := min(max(c.gin.Request.ContentLength, 0), c.MaxBody)
	if c.gin.Request.ContentLength > c.MaxBody {
		return nil, c.refuseTooLarge()
	}
	buffer := make([]byte, 0, size+512)
	limited := io.LimitReader(c.gin.Request.Body, c.MaxBody+1)
	for {
		n, err := limited.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		switch {
		case int64(len(buffer)) > c.MaxBody:
			return nil, c.refuseTooLarge()
		case err == io.EOF:
			c.Meter.read(c.ctx, c.resource, len(buffer))
			return buffer, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, apierrors.NewTimeoutError("the request's body did not arrive in time", 0)
		case err != nil:
			return nil, apierrors.NewBadRequest("read the request's body: " + err.Error())
		case len(buffer) == cap(buffer):
			buffer = append(buffer, 0)[:len(buffer)]
		}
	}
}

// refuseTooLarge reads and discards a little more: a client that is still writing
// when the connection is closed never sees the answer.
func (c *call) refuseTooLarge() error {
	_, _ = io.CopyN(io.Discard, c.gin.Request.Body, c.MaxBody)
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", c.MaxBody))
}

// unsupportedMediaType refuses a content type and names the accepted ones.
func unsupportedMediaType(media, why string, taken ...string) error {
	message := fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s", strings.Join(taken, ", "))
	if why != "" {
		message = media + ": " + why + "; " + message
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnsupportedMediaType,
		Reason:  metav1.StatusReasonUnsupportedMediaType,
		Message: message,
	}}
}

// contentType is the request's content type; JSON if it has none.
func (c *call) contentType() string {
	header := c.header("Content-Type")
	if header == "" || header == runtime.ContentTypeJSON {
		return runtime.ContentTypeJSON
	}
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		return header
	}
	return media
}

// checkContentType refuses a body of a media type that is not supported.
func (c *call) checkContentType() error {
	switch media := c.contentType(); {
	case media == runtime.ContentTypeJSON, media == runtime.ContentTypeYAML, media == runtime.ContentTypeProtobuf && !c.jsonOnly:
		return nil
	case c.jsonOnly:
		return unsupportedMediaType(media, "", runtime.ContentTypeJSON, runtime.ContentTypeYAML)
	default:
		return unsupportedMediaType(media, "", runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf)
	}
}

// decodeBody reads the body into an object of the given kind.
func (c *call) decodeBody(into runtime.Object, kind schema.GroupVersionKind, fieldValidation string) error {
	if err := c.checkContentType(); err != nil {
		return err
	}
	body, err := c.readBody()
	if err != nil {
		return err
	}
	switch c.contentType() {
	case runtime.ContentTypeJSON:
		return c.decodeJSON(body, into, kind, fieldValidation)
	case runtime.ContentTypeYAML:
		return c.decodeYAML(body, into, kind, fieldValidation)
	default:
		return decodeProtobuf(body, into, kind)
	}
}

// decodeJSON reads JSON; doubled are duplicate fields that were found before.
func (c *call) decodeJSON(body []byte, into runtime.Object, kind schema.GroupVersionKind, fieldValidation string, doubled ...error) error {
	if err := bodylimit.JSON(body); err != nil {
		return err
	}
	if err := checkJSONQuantities(body, into); err != nil {
		return err
	}
	var strict []error
	var err error
	if c.jsonOnly {
		strict, err = c.decodeUnstructured(body, into.(*unstructured.Unstructured), kind)
	} else {
		strict, err = c.decodeTyped(body, into, kind, fieldValidation)
	}
	if err != nil {
		return err
	}
	if err := c.applyFieldValidation(append(doubled, strict...), fieldValidation); err != nil {
		return cannotHandle(kind, err)
	}
	return nil
}

// decodeTyped decodes an object of a Go type. strict lists unknown and duplicate fields.
func (c *call) decodeTyped(body []byte, into runtime.Object, kind schema.GroupVersionKind,
	fieldValidation string) (strict []error, err error) {
	if strict, err = unmarshal(body, into, fieldValidation); err != nil {
		return nil, unreadable(kind, body, err)
	}
	if err := checkKind(into, kind, c.acceptedKinds...); err != nil {
		return nil, err
	}
	if err := c.checkReadable(into); err != nil {
		return nil, cannotHandle(kind, err)
	}
	return strict, nil
}

// readabilityChecker is implemented by resources whose objects can be unreadable although
// each of their fields is readable.
type readabilityChecker interface {
	Unreadable(obj core.Object) error
}

// checkReadable asks the resource whether it can read the decoded object.
func (c *call) checkReadable(decoded runtime.Object) error {
	store, ok := c.store.(readabilityChecker)
	obj, isObject := decoded.(core.Object)
	if !ok || !isObject {
		return nil
	}
	return store.Unreadable(obj)
}

// bodyDecoder is implemented by resources with a decoder of their own.
type bodyDecoder interface {
	DecodeBody(body []byte) (obj core.Object, strict []error, err error)
}

// decodeUnstructured decodes an object with its resource's own decoder. strict lists
// unknown and duplicate fields.
func (c *call) decodeUnstructured(body []byte, into *unstructured.Unstructured, kind schema.GroupVersionKind) (strict []error, err error) {
	obj, strict, err := c.decodeAnyKind(body, kind)
	if err != nil {
		return nil, err
	}
	if got := obj.GroupVersionKind(); got.GroupVersion() != kind.GroupVersion() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
			got.GroupVersion(), kind.GroupVersion()))
	}
	*into = *obj
	return strict, nil
}

// decodeAnyKind is decodeUnstructured without a check of kind and version.
func (c *call) decodeAnyKind(body []byte, kind schema.GroupVersionKind) (obj *unstructured.Unstructured, strict []error, err error) {
	decoder, ok := c.store.(bodyDecoder)
	if !ok {
		return nil, nil, fmt.Errorf("%s has no way to read its objects", c.resource.Name)
	}
	read, strict, err := decoder.DecodeBody(body)
	if err != nil {
		return nil, nil, cannotHandle(kind, err)
	}
	obj, ok = read.(*unstructured.Unstructured)
	if !ok {
		return nil, nil, fmt.Errorf("%s reads its objects as %T", c.resource.Name, read)
	}
	return obj, strict, nil
}

func (c *call) decodeYAML(body []byte, into runtime.Object, kind schema.GroupVersionKind, fieldValidation string) error {
	text, err := bodylimit.YAMLToJSON(body, c.MaxBody)
	if err != nil {
		return cannotHandle(kind, err)
	}
	var doubled []error
	if fieldValidation != metav1.FieldValidationIgnore {
		if _, err := yaml.YAMLToJSONStrict(body); err != nil {
			doubled = append(doubled, err)
		}
	}
	return c.decodeJSON(text, into, kind, fieldValidation, doubled...)
}

func decodeProtobuf(body []byte, into runtime.Object, kind schema.GroupVersionKind) error {
	if err := bodylimit.Protobuf(body, kind); err != nil {
		return err
	}
	if err := checkProtobufQuantities(bytes.TrimPrefix(body, []byte(scheme.ProtobufPrefix))); err != nil {
		return err
	}
	_, actual, err := scheme.Protobuf.Decode(body, &kind, into)
	if err != nil {
		return cannotHandle(kind, err)
	}
	// Objects are stored as JSON, and what protobuf has as a field of any content (runtime.RawExtension)
	// need not be that.
	err = scheme.Write(io.Discard, into)
	if err != nil && dropUnreadableOwnership(into) {
		err = scheme.Write(io.Discard, into)
	}
	if err != nil {
		return cannotHandle(kind, err)
	}
	into.GetObjectKind().SetGroupVersionKind(*actual)
	return checkKind(into, kind)
}

// applyFieldValidation refuses, warns about or ignores unknown and duplicate fields, as fieldValidation
// says.
func (c *call) applyFieldValidation(strict []error, fieldValidation string) error {
	if len(strict) == 0 || fieldValidation == metav1.FieldValidationIgnore {
		return nil
	}
	if fieldValidation == metav1.FieldValidationStrict {
		return runtime.NewStrictDecodingError(strict)
	}
	for _, err := range strict {
		c.warnOfError(err)
	}
	return nil
}

// warnOfError warns about a fault. Those of YAML come several at once, below a headline.
func (c *call) warnOfError(err error) {
	headline, rest, several := strings.Cut(err.Error(), "\n")
	if !several {
		request.Warn(c.ctx, headline)
		return
	}
	for line := range strings.SplitSeq(rest, "\n") {
		request.Warn(c.ctx, strings.TrimSpace(line))
	}
}

// unreadable is the error for a body that is not an object, or not one of the
// kind. It does not show the body, which may hold secrets.
func unreadable(kind schema.GroupVersionKind, body []byte, err error) error {
	var object map[string]json.RawMessage
	if parseErr := json.Unmarshal(body, &object); parseErr != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): couldn't get "+
			"version/kind; json parse error: %v", kind.Kind, parseErr))
	}
	return cannotHandle(kind, err)
}

// cannotHandle is the error for a body that does not fit the URL, with the reason.
func cannotHandle(kind schema.GroupVersionKind, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", kind.Kind, kind.Version, kind.Kind, err))
}

// checkNameAndNamespace sets the object's name and namespace to those of the URL, or refuses if they
// differ.
func (c *call) checkNameAndNamespace(obj core.Object) error {
	if c.resource.Namespaced {
		switch obj.GetNamespace() {
		case "":
			obj.SetNamespace(c.namespace)
		case c.namespace:
		default:
			return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
		}
	} else {
		obj.SetNamespace("")
	}
	if c.name == "" || obj.GetName() == c.name {
		return nil
	}
	if obj.GetName() == "" {
		return c.nameMissing()
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), c.name))
}

func (c *call) nameMissing() error {
	return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", c.name))
}
