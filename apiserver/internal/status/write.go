package status

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/negotiation"
)

// Write answers r with the Status of an error, in the form that r prefers, or in
// JSON if it accepts none of the forms, so that it can read why.
func Write(w http.ResponseWriter, r *http.Request, err error) {
	answer := Of(err)
	media, clause := negotiate(r)
	body := encode(answer, media, negotiation.Pretty(r, clause))
	header := w.Header()
	header.Set("Content-Type", media)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if d := answer.Details; d != nil && d.RetryAfterSeconds > 0 {
		header.Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	w.WriteHeader(int(answer.Code))
	_, _ = w.Write(body) // a client that is gone needs no answer
}

func negotiate(r *http.Request) (string, negotiation.Clause) {
	for _, clause := range negotiation.Clauses(r) {
		if media, ok := clause.Form(); ok && clause.Plain() {
			return media, clause
		}
	}
	return runtime.ContentTypeJSON, negotiation.Clause{}
}

func encode(answer *metav1.Status, media string, pretty bool) []byte {
	switch media {
	case runtime.ContentTypeYAML:
		if out, err := yaml.JSONToYAML(encodeJSON(answer)); err == nil {
			return out
		}
	case runtime.ContentTypeProtobuf:
		var out bytes.Buffer
		if err := protobuf.NewSerializer(nil, nil).Encode(answer, &out); err == nil {
			return out.Bytes()
		}
	}
	body := encodeJSON(answer)
	if pretty {
		var out bytes.Buffer
		if err := json.Indent(&out, body, "", "  "); err == nil {
			body = out.Bytes()
		}
	}
	return append(body, '\n')
}
