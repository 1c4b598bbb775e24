package audit

import (
	"bytes"
	"compress/gzip"
	"errors"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"

	"kctl/apiserver/internal/scheme"
)

// TestBodies: the event contains the object of an answer, in whatever encoding
// it was sent.
func TestBodies(t *testing.T) {
	for name, body := range map[string]*Body{
		"gzip":     {ContentType: "application/json", Coding: "gzip"},
		"protobuf": {ContentType: "application/vnd.kubernetes.protobuf"},
		"half":     {ContentType: "application/json", Coding: "gzip"},
	} {
		want := ""
		switch name {
		case "gzip":
			_, _ = body.Write(packed(t, `{"a": 1}`))
			want = `{"a":1}`
		case "half":
			whole := packed(t, `{"a": 1}`)
			_, _ = body.Write(whole[:len(whole)-9])
		case "protobuf":
			_, _ = body.Write(encoded(t, &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}))
			want = `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{},"spec":{"replicas":3},"status":{"replicas":0}}`
		}
		if got := string(body.JSON(false)); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write([]byte(text))
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func encoded(t *testing.T, scale *autoscalingv1.Scale) []byte {
	t.Helper()
	scale.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	var out bytes.Buffer
	if err := scheme.Protobuf.Encode(scale, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
