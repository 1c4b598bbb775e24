package negotiation

import (
	"net/http"
	"slices"
	"strings"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Clause is one media range of the header.
type Clause struct {
	Media  string            // "application/json", "*/*"
	Params map[string]string // as=Table and the like, without the weight
}

// maxParts is how many clauses and parameters count: far more than clients send.
const maxParts = 1000

// Clauses returns the media ranges of r in order of preference, as upstream's
// library parses and sorts them. What follows the first thousand doesn't count: each
// takes half a kilobyte, and a header has room for 200,000, which strangers may send, too.
func Clauses(r *http.Request) []Clause {
	var out []Clause
	for _, c := range goautoneg.ParseAccept(first(maxParts, r.Header.Get("Accept"))) {
		out = append(out, Clause{c.Type + "/" + c.SubType, c.Params})
	}
	return out
}

// first cuts a header after the last clause that ends within its first parts: one without
// some of its parameters would mean something else.
func first(parts int, header string) string {
	if strings.Count(header, ",")+strings.Count(header, ";") < parts {
		return header
	}
	clauses, end := "", 0
	for range parts {
		end += strings.IndexAny(header[end:], ",;") + 1
		if header[end-1] == ',' {
			clauses = header[:end-1]
		}
	}
	return clauses
}

// Range reports whether c is a range such as "application/*".
func (c Clause) Range() bool { return strings.HasSuffix(c.Media, "/*") }

// Plain reports whether c asks for the object itself, and not for another kind
// such as a Table.
func (c Clause) Plain() bool {
	return c.Params["as"] == "" && c.Params["g"] == "" && c.Params["v"] == ""
}

// Form returns the supported media type that c means, as one of
// runtime.ContentType…; false if there is none. As in upstream, the stream
// parameter also counts for answers that are not streams.
func (c Clause) Form() (string, bool) {
	media := c.Media
	if media == "*/*" || media == "application/*" {
		media = runtime.ContentTypeJSON
	}
	switch stream := c.Params["stream"]; {
	case !slices.Contains(Forms, media), c.Params["sv"] != "":
		return "", false
	default:
		return media, stream == "" || stream == "watch" && media != runtime.ContentTypeYAML
	}
}

// Forms are all forms of objects.
var Forms = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}

// RequireOneOf rejects r if it names none of the offered media types
// explicitly. A range ("application/*") does not count, as in upstream for the
// endpoints of its router.
func RequireOneOf(r *http.Request, offered ...string) error {
	header := r.Header.Get("Accept")
	if header == "" {
		return nil
	}
	for clause := range strings.SplitSeq(header, ",") {
		media, _, _ := strings.Cut(clause, ";")
		if media = strings.Trim(media, " "); media == "*/*" || slices.Contains(offered, media) {
			return nil
		}
	}
	refusal := NotAcceptable("406: Not Acceptable\n\nAvailable representations: " + strings.Join(offered, ", "))
	refusal.ErrStatus.Details = &metav1.StatusDetails{}
	return refusal
}

// NoneAcceptable is the error for a client that accepts none of the media
// types.
func NoneAcceptable(offered ...string) error {
	return NotAcceptable("only the following media types are accepted: " + strings.Join(offered, ", "))
}

// NotAcceptable is a 406 with a reason.
func NotAcceptable(message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: message,
	}}
}
