package handlers

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// form is how a client wants an object.
type form struct {
	media  string // one of runtime.ContentType…
	as     string // "", "Table" or "PartialObjectMetadata"
	list   bool   // as a list of these
	group  string // version of what it is sent as: "v1", "v1beta1"
	pretty bool
}

// plain reports whether stored bytes are what is wanted.
func (f form) plain() bool {
	return f.media == runtime.ContentTypeJSON && f.as == "" && !f.pretty
}

const (
	asTable    = "Table"
	asMetadata = "PartialObjectMetadata"
)

// negotiate reads what the client accepts.
func (c *call) negotiate(stream bool) (form, error) {
	f, err := best(c.gin.Request, stream, func(f form) bool {
		return !c.jsonOnly || f.as != "" || f.media != runtime.ContentTypeProtobuf
	})
	if err != nil {
		return form{}, err
	}
	pretty, _ := strconv.ParseBool(c.gin.Query("pretty"))
	f.pretty = pretty && !stream
	return f, nil
}

// mediaType is that of an answer that has no other forms: neither a
// table nor metadata alone. The error is a 406.
func mediaType(r *http.Request) (string, error) {
	f, err := best(r, false, func(f form) bool { return f.as == "" })
	return f.media, err
}

// best is what the client likes best of the forms that we have for it, in its
// order among equals.
func best(r *http.Request, stream bool, have func(form) bool) (form, error) {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if header == "" {
		return form{media: runtime.ContentTypeJSON}, nil
	}
	for _, clause := range clauses(header) {
		if f, ok := formOf(clause, stream); ok && have(f) {
			return f, nil
		}
	}
	return form{}, notAcceptable(stream)
}

type clause struct {
	media  string
	params map[string]string
	weight float64
}

func clauses(header string) []clause {
	var out []clause
	for text := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(text)
		if err != nil {
			continue
		}
		weight := 1.0
		if q, ok := params["q"]; ok {
			if weight, err = strconv.ParseFloat(q, 64); err != nil || weight <= 0 {
				continue
			}
		}
		out = append(out, clause{media, params, weight})
	}
	slices.SortStableFunc(out, func(a, b clause) int {
		switch {
		case a.weight > b.weight:
			return -1
		case a.weight < b.weight:
			return 1
		}
		return 0
	})
	return out
}

func formOf(c clause, stream bool) (form, bool) {
	f := form{media: c.media, as: c.params["as"], group: c.params["v"]}
	if f.as == asMetadata+"List" {
		f.as, f.list = asMetadata, true
	}
	switch c.media {
	case "*/*", "application/*":
		f.media = runtime.ContentTypeJSON
	case runtime.ContentTypeJSON, runtime.ContentTypeProtobuf:
	case runtime.ContentTypeYAML:
		if stream {
			return form{}, false
		}
	default:
		return form{}, false
	}
	switch f.as {
	case "":
		return f, true
	case asTable:
		if f.media == runtime.ContentTypeProtobuf {
			return form{}, false
		}
	case asMetadata:
	default:
		return form{}, false
	}
	known := f.group == "v1" || f.group == "v1beta1"
	return f, known && (c.params["g"] == metav1.GroupName)
}

// negotiateRead is negotiate for a read: an object is not sent as a list, and a
// list not as one object.
func (c *call) negotiateRead(list bool) error {
	f, err := c.negotiate(false)
	switch {
	case err != nil:
		return err
	case f.as != asMetadata || f.list == list:
		return nil
	case list:
		return unacceptable(fmt.Sprintf("you requested %s, but the requested object is a list (%sList)", asMetadata, c.kind.Kind))
	}
	return unacceptable(fmt.Sprintf("you requested %sList, but the requested object is not a list (%s)", asMetadata, c.kind.Kind))
}

func notAcceptable(stream bool) error {
	offered := []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}
	if stream {
		offered = []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf}
	}
	return unacceptable("only the following media types are accepted: " + strings.Join(offered, ", "))
}

func unacceptable(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: message,
	}}
}
