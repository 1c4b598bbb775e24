package handlers

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/negotiation"
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

// negotiate chooses the form of an answer from the Accept header.
func (c *call) negotiate() (form, error) {
	f, err := c.bestForm(c.sends)
	f.pretty = f.pretty || negotiation.Pretty(c.gin.Request, negotiation.Clause{})
	return f, err
}

// negotiateStream is negotiate for the events of a watch.
func (c *call) negotiateStream() (form, error) {
	f, err := c.bestForm(c.sends)
	if err == nil && f.media == runtime.ContentTypeYAML {
		err = negotiation.NoneAcceptable(streamed...) // as in upstream, less preferred types do not count
	}
	f.pretty = false
	return f, err
}

// sends reports whether the resource's objects can be sent in a form.
func (c *call) sends(f form) bool {
	return !c.jsonOnly || f.as != "" || f.media != runtime.ContentTypeProtobuf
}

// mediaType negotiates the media type of an answer that can't be a table or
// metadata alone. The error is a 406.
func (c *call) mediaType() (string, error) {
	f, err := c.bestForm(func(f form) bool { return f.as == "" })
	return f.media, err
}

// streamed are the forms of watch events.
var streamed = []string{runtime.ContentTypeJSON + ";stream=watch", runtime.ContentTypeProtobuf + ";stream=watch"}

// bestForm is the client's preferred one of the supported forms.
func (c *call) bestForm(have func(form) bool) (form, error) {
	r := c.gin.Request
	if r.Header.Get("Accept") == "" {
		return form{media: runtime.ContentTypeJSON}, nil
	}
	for _, clause := range negotiation.Clauses(r) {
		f, ok := formOf(clause)
		if !ok || !have(f) {
			continue
		}
		if clause.Range() {
			return f, c.checkRouterAccepts()
		}
		return f, nil
	}
	return form{}, cmp.Or(c.checkRouterAccepts(), negotiation.NoneAcceptable(negotiation.Forms...))
}

// checkRouterAccepts rejects what upstream's router rejects before its handlers run. Custom
// resources are not in that router.
func (c *call) checkRouterAccepts() error {
	if c.custom {
		return nil
	}
	offered := negotiation.Forms
	if c.name == "" && (c.gin.Request.Method == http.MethodGet || c.gin.Request.Method == http.MethodHead) {
		offered = slices.Concat(offered, streamed)
	}
	return negotiation.RequireOneOf(c.gin.Request, offered...)
}

func formOf(c negotiation.Clause) (form, bool) {
	media, ok := c.Form()
	if !ok {
		return form{}, false
	}
	f := form{media: media, as: c.Params["as"], group: c.Params["v"], pretty: c.Params["pretty"] == "1"}
	if f.as == asMetadata+"List" {
		f.as, f.list = asMetadata, true
	}
	switch f.as {
	case "":
		return f, c.Plain()
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
	f, err := c.negotiate()
	switch {
	case err != nil:
		return err
	case f.as != asMetadata || f.list == list:
		return nil
	case list:
		return negotiation.NotAcceptable(fmt.Sprintf("you requested %s, but the requested object is a list (%sList)", asMetadata, c.kind.Kind))
	}
	return negotiation.NotAcceptable(fmt.Sprintf("you requested %sList, but the requested object is not a list (%s)", asMetadata, c.kind.Kind))
}
