package handlers

import (
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/accept"
)

// form is the form in which a client wants an object.
type form struct {
	media  string // one of runtime.ContentType…
	as     string // "", "Table" or "PartialObjectMetadata"
	list   bool   // as a list of them
	group  string // version of that kind: "v1", "v1beta1"
	pretty bool
}

// plain reports whether the stored bytes are in that form.
func (f form) plain() bool {
	return f.media == runtime.ContentTypeJSON && f.as == "" && !f.pretty
}

const (
	asTable    = "Table"
	asMetadata = "PartialObjectMetadata"
)

// negotiate chooses the form from the Accept header.
func (c *call) negotiate(stream bool) (form, error) {
	have := func(f form) bool {
		return !c.jsonOnly || f.as != "" || f.media != runtime.ContentTypeProtobuf
	}
	f, err := best(c.gin.Request, false, have)
	if err == nil && stream {
		f, err = best(c.gin.Request, true, have)
	}
	if err != nil {
		return form{}, err
	}
	f.pretty = !stream && (f.pretty || accept.ByPeople(c.gin.Request, accept.Clause{}))
	return f, nil
}

// mediaType negotiates the media type of an answer that can't be a table or
// metadata alone. The error is a 406.
func mediaType(r *http.Request) (string, error) {
	f, err := best(r, false, func(f form) bool { return f.as == "" })
	return f.media, err
}

// best is the client's preferred one of the supported forms; among equals, the
// first in its list.
func best(r *http.Request, stream bool, have func(form) bool) (form, error) {
	if strings.Join(r.Header.Values("Accept"), "") == "" {
		return form{media: runtime.ContentTypeJSON}, nil
	}
	for _, clause := range accept.Clauses(r) {
		if f, ok := formOf(clause, stream); ok && have(f) {
			return f, nil
		}
	}
	return form{}, notAcceptable(stream)
}

func formOf(c accept.Clause, stream bool) (form, bool) {
	media, ok := c.Form()
	if !ok || stream && media == runtime.ContentTypeYAML {
		return form{}, false
	}
	f := form{media: media, as: c.Params["as"], group: c.Params["v"], pretty: c.Params["pretty"] == "1"}
	if f.as == asMetadata+"List" {
		f.as, f.list = asMetadata, true
	}
	switch f.as {
	case "":
		_, group := c.Params["g"]
		_, version := c.Params["v"]
		return f, !group && !version
	case asTable:
		if f.media == runtime.ContentTypeProtobuf {
			return form{}, false
		}
	case asMetadata:
	default:
		return form{}, false
	}
	known := f.group == "v1" || f.group == "v1beta1"
	return f, known && (c.Params["g"] == metav1.GroupName)
}

// negotiateRead is negotiate for a read: an object can't be sent as a list, nor
// a list as an object.
func (c *call) negotiateRead(list bool) error {
	f, err := c.negotiate(false)
	switch {
	case err != nil:
		return err
	case f.as != asMetadata || f.list == list:
		return nil
	case list:
		return accept.Refusal(fmt.Sprintf("you requested %s, but the requested object is a list (%sList)", asMetadata, c.kind.Kind))
	}
	return accept.Refusal(fmt.Sprintf("you requested %sList, but the requested object is not a list (%s)", asMetadata, c.kind.Kind))
}

func notAcceptable(stream bool) error {
	if stream {
		return accept.None(runtime.ContentTypeJSON, runtime.ContentTypeProtobuf)
	}
	return accept.None(accept.Forms...)
}
