package audit

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/request"
)

// TestSlow: the events of requests that take longer than half a second say where the
// time went, and no others.
func TestSlow(t *testing.T) {
	p, err := load(t, "rules: [{level: Metadata}]")
	if err != nil {
		t.Fatal(err)
	}
	for took, want := range map[time.Duration]string{
		500 * time.Millisecond: `null`,
		501 * time.Millisecond: `{"apiserver.latency.k8s.io/etcd":"7ms","apiserver.latency.k8s.io/mutating-webhook":"400ms","apiserver.latency.k8s.io/total":"501ms"}`,
	} {
		clock := testingclock.NewFakePassiveClock(time.Now())
		r := httptest.NewRequest("POST", "/api/v1/namespaces/a/pods", nil)
		ctx := request.With(r.Context(), &request.Arrival{At: clock.Now(), Info: request.Parse(r)})
		record := New(p, nil, prometheus.NewRegistry(), clock).Begin(r.WithContext(ctx), nil)
		request.Spent(ctx, request.MutatingWebhooks, 300*time.Millisecond)
		request.Spent(ctx, request.MutatingWebhooks, 100*time.Millisecond)
		request.Spent(ctx, request.Storage, 7*time.Millisecond)
		clock.SetTime(clock.Now().Add(took))
		record.Slow(ctx)
		if got, err := json.Marshal(record.event.Annotations); err != nil || string(got) != want {
			t.Errorf("%s: %s (%v), want %s", took, got, err, want)
		}
	}
}

// TestBodies: what is kept of an answer is its object, however it was sent.
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
	if err := protobufObjects.Encode(scale, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
