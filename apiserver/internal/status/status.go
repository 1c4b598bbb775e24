package status

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/accept"
)

// Of is the Status of an error; errors that have none are the server's.
func Of(err error) *metav1.Status {
	var known apierrors.APIStatus
	var status metav1.Status
	if errors.As(err, &known) {
		status = known.Status()
	} else {
		status = apierrors.NewInternalError(err).Status()
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	return &status
}

// JSON is the Status of an error as a watch sends it.
func JSON(err error) []byte { return encode(Of(err)) }

func encode(status *metav1.Status) []byte {
	text, err := json.Marshal(status)
	if err != nil { // it is made of strings and numbers
		return []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`)
	}
	return text
}

// Write answers r with the Status of an error, in the form that r likes best; in
// JSON where it accepts none that there is: it is to read why.
func Write(w http.ResponseWriter, r *http.Request, err error) {
	status := Of(err)
	media := formFor(r)
	body := inForm(status, media)
	header := w.Header()
	header.Set("Content-Type", media)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		header.Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(body) // a client that is gone needs no answer
}

func formFor(r *http.Request) string {
	for _, clause := range accept.Clauses(r) {
		if media, ok := clause.Form(); ok && clause.Params["as"] == "" {
			return media
		}
	}
	return runtime.ContentTypeJSON
}

func inForm(status *metav1.Status, media string) []byte {
	switch media {
	case runtime.ContentTypeYAML:
		if out, err := yaml.JSONToYAML(encode(status)); err == nil {
			return out
		}
	case runtime.ContentTypeProtobuf:
		var out bytes.Buffer
		if err := protobuf.NewSerializer(nil, nil).Encode(status, &out); err == nil {
			return out.Bytes()
		}
	}
	return append(encode(status), '\n')
}
