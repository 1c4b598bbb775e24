package resources

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/resources/autoscaling"
	"kctl/apiserver/internal/resources/event"
	"kctl/proto/core"
)

// Forms are the kinds that are shown here beside those that are stored, and in which etcd
// may hold the same objects: kube-apiserver stored autoscalers in version 1 for years.
func Forms() map[schema.GroupVersionKind]func(shown core.Object) (stored core.Object, err error) {
	return map[schema.GroupVersionKind]func(core.Object) (core.Object, error){
		autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"): func(shown core.Object) (core.Object, error) {
			stored := new(autoscalingv2.HorizontalPodAutoscaler)
			err := autoscaling.FromVersion1(shown, stored)
			stored.SetGroupVersionKind(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"))
			return stored, err
		},
		eventsv1.SchemeGroupVersion.WithKind("Event"): func(shown core.Object) (core.Object, error) {
			stored := new(core.Event)
			event.ToCore(shown.(*eventsv1.Event), stored)
			stored.SetGroupVersionKind(core.Events.GVK())
			return stored, nil
		},
	}
}
