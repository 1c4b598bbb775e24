package etcd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/resources"
	"kctl/apiserver/internal/scheme"
	"kctl/apiserver/internal/storage/etcd"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

// TestForms: objects that etcd has in a version or group that is only shown here are read,
// and watched, as those that are stored.
func TestForms(t *testing.T) {
	_, embedded := etcdtest.StartIn(t, t.TempDir())
	store := etcd.NewStore(etcd.Options{
		Client: embedded.Client(), Direct: embedded.Direct(), CurrentRevision: embedded.Revision, Forms: resources.Forms(), Clock: clock.RealClock{},
	})

	autoscaler := &autoscalingv1.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "u"},
		Spec:       autoscalingv1.HorizontalPodAutoscalerSpec{MaxReplicas: 7, TargetCPUUtilizationPercentage: new(int32(55))},
	}
	event := &eventsv1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "e", UID: "u"},
		EventTime: metav1.MicroTime{Time: time.Unix(1700000000, 0)}, Note: "said", Reason: "R",
	}
	check := func(key string, value []byte) {
		t.Helper()
		var err error
		switch key {
		case "/registry/horizontalpodautoscalers/n/a":
			var a autoscalingv2.HorizontalPodAutoscaler
			err = json.Unmarshal(value, &a)
			if a.APIVersion != "autoscaling/v2" || a.Name != "a" || a.UID != "u" || a.Spec.MaxReplicas != 7 || len(a.Spec.Metrics) != 1 ||
				*a.Spec.Metrics[0].Resource.Target.AverageUtilization != 55 {
				t.Errorf("%s", value)
			}
		default:
			var e core.Event
			err = json.Unmarshal(value, &e)
			if e.APIVersion != "v1" || e.Name != "e" || e.UID != "u" || e.Message != "said" || e.Reason != "R" {
				t.Errorf("%s", value)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	for key, object := range map[string]runtime.Object{"/registry/horizontalpodautoscalers/n/a": autoscaler, "/registry/events/n/e": event} {
		var inProtobuf bytes.Buffer
		if err := scheme.Protobuf.Encode(object, &inProtobuf); err != nil {
			t.Fatal(err)
		}
		inJSON, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range [][]byte{inProtobuf.Bytes(), inJSON} {
			put, err := embedded.Client().Put(t.Context(), key, string(value))
			if err != nil {
				t.Fatal(err)
			}
			read, err := store.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if !read.Stale {
				t.Errorf("%s would not be written again in the stored form", key)
			}
			check(key, read.Value)
			ctx, end := context.WithCancel(t.Context())
			watch, err := store.Watch(ctx, key, put.Header.Revision-1)
			if err != nil {
				t.Fatal(err)
			}
			seen := (<-watch.Events())[0]
			if seen.Object.Unreadable != nil {
				t.Fatal(seen.Object.Unreadable)
			}
			check(key, seen.Object.Value)
			end()
		}
	}
}
