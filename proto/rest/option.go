package rest

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Option changes one request.
type Option func(*call)

type call struct {
	method      string
	path        string
	body        any
	query       url.Values
	header      http.Header
	subresource string
	contentType string
	onWarning   func(text string)
	lineBuffer  int // of a watch; 0 for the usual size
	// What it is about, for errors whose answer does not say.
	resource schema.GroupResource
	name     string
}

func newCall(method string, body any, opts []Option) *call {
	c := &call{method: method, body: body, query: url.Values{}, header: http.Header{}}
	for _, o := range opts {
		o(c)
	}
	return c
}

// String is the call as errors name it.
func (c *call) String() string { return c.method + " " + c.path }

// Sub addresses a subresource: "status", "binding", "log".
func Sub(subresource string) Option { return func(c *call) { c.subresource = subresource } }

// Query adds a query parameter; an empty value is left out.
func Query(key, value string) Option {
	return func(c *call) {
		if value != "" {
			c.query.Add(key, value)
		}
	}
}

// FewEvents makes a watch take little memory while nothing comes.
func FewEvents() Option { return func(c *call) { c.lineBuffer = smallLineBuffer } }

// Values adds query parameters as they are, including those without a value.
func Values(values url.Values) Option {
	return func(c *call) {
		for key, each := range values {
			c.query[key] = append(c.query[key], each...)
		}
	}
}

// Header sets a request header; an empty value is left out.
func Header(key, value string) Option {
	return func(c *call) {
		if value != "" {
			c.header.Set(key, value)
		}
	}
}

// Accept asks for a form of the answer other than JSON objects.
func Accept(mime string) Option { return Header("Accept", mime) }

// ContentType says what the body is, where it is not JSON.
func ContentType(mime string) Option { return func(c *call) { c.contentType = mime } }

// LabelSelector narrows a list or watch to objects with matching labels.
func LabelSelector(s string) Option { return Query("labelSelector", s) }

// FieldSelector narrows a list or watch to objects with matching fields.
func FieldSelector(s string) Option { return Query("fieldSelector", s) }

// OnWarning is called with each Warning header of the answer.
func OnWarning(f func(text string)) Option { return func(c *call) { c.onWarning = f } }

// warn reads Warning headers (RFC 7234: `299 agent "quoted text"`).
func (c *call) warn(resp *http.Response) {
	if c.onWarning == nil {
		return
	}
	for _, value := range resp.Header.Values("Warning") {
		_, quoted, ok := strings.Cut(value, `"`)
		if !ok {
			continue
		}
		text, err := strconv.QuotedPrefix(`"` + quoted)
		if err != nil {
			continue
		}
		if text, err = strconv.Unquote(text); err == nil {
			c.onWarning(text)
		}
	}
}
