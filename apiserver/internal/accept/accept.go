package accept

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Clause is one media range of the header.
type Clause struct {
	Media  string            // "application/json", "*/*"
	Params map[string]string // as=Table and the like
	weight float64
}

// Clauses are the media ranges that r names, by preference, and among equals the
// most specific first. Invalid ones are skipped. An invalid weight counts as 1, and
// a weight of 0 comes last, as in upstream.
func Clauses(r *http.Request) []Clause {
	var out []Clause
	for text := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		media, params, err := mime.ParseMediaType(text)
		if err != nil || !strings.Contains(media, "/") {
			continue
		}
		weight := 1.0
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			weight = q
		}
		out = append(out, Clause{media, params, weight})
	}
	slices.SortStableFunc(out, func(a, b Clause) int {
		switch {
		case a.weight != b.weight && a.weight > b.weight:
			return -1
		case a.weight != b.weight:
			return 1
		}
		return a.vagueness() - b.vagueness()
	})
	return out
}

// vagueness is 0 for one media type, and more for ranges.
func (c Clause) vagueness() int {
	switch {
	case c.Media == "*/*":
		return 2
	case strings.HasSuffix(c.Media, "/*"):
		return 1
	}
	return 0
}

// Form is the supported form that c means, as one of runtime.ContentType…;
// false if there is none.
func (c Clause) Form() (string, bool) {
	switch c.Media {
	case "*/*", "application/*":
		return runtime.ContentTypeJSON, true
	case runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf:
		return c.Media, true
	}
	return "", false
}

// Forms are all forms of objects.
var Forms = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}

// Only refuses r if it names none of the offered forms explicitly: a range
// ("application/*") does not count, as in upstream for documents that its router
// serves.
func Only(r *http.Request, offered ...string) error {
	if strings.Join(r.Header.Values("Accept"), "") == "" {
		return nil
	}
	meant := func(c Clause) bool { return c.Media == "*/*" || slices.Contains(offered, c.Media) }
	if slices.ContainsFunc(Clauses(r), meant) {
		return nil
	}
	refusal := Refusal("406: Not Acceptable\n\nAvailable representations: " + strings.Join(offered, ", "))
	refusal.ErrStatus.Details = &metav1.StatusDetails{}
	return refusal
}

// None is the answer to a client that accepts none of the forms.
func None(offered ...string) error {
	return Refusal("only the following media types are accepted: " + strings.Join(offered, ", "))
}

// Refusal is a 406 with a reason.
func Refusal(message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: message,
	}}
}
