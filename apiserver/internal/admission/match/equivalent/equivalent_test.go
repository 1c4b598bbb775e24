package equivalent_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/admission/match/equivalent"
	"kctl/apiserver/internal/customresources"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

// noneCustom answers for everything as Definitions do when it is not a custom
// resource.
type noneCustom struct{}

func (noneCustom) Infos() []customresources.Info { return nil }

func (noneCustom) Lookup(context.Context, schema.GroupVersionResource) (served registry.Served, warning string, ok bool, err error) {
	return registry.Served{}, "", false, nil
}

func (noneCustom) Equivalent(core.Resource) []core.Resource { return nil }

func (noneCustom) Convert(context.Context, core.Object, core.Resource) (core.Object, error) {
	return nil, fmt.Errorf("no custom resource")
}

var inGroup = core.Resource{Group: "events.k8s.io", Version: "v1", Name: "events", Kind: "Event", Namespaced: true}

// An object that is stored once and served in two groups is converted between
// them, both ways, and to nothing else.
func TestFormsOfOneObject(t *testing.T) {
	stored := registrytest.New(core.Events)
	view := &registry.View{
		Stored: stored, Shown: registry.Info{Resource: inGroup}, NewKind: func() core.Object { return &eventsv1.Event{} },
		Show: func(obj core.Object) (core.Object, error) {
			e := obj.(*corev1.Event)
			return &eventsv1.Event{ObjectMeta: e.ObjectMeta, Note: e.Message}, nil
		},
		WriteBack: func(shown, obj core.Object) error {
			from, to := shown.(*eventsv1.Event), obj.(*corev1.Event)
			to.ObjectMeta, to.Message = from.ObjectMeta, from.Note
			return nil
		},
	}
	forms := equivalent.New([]registry.Served{{Resource: stored}, {Resource: view}, {Resource: registrytest.New(core.ConfigMaps)}}, noneCustom{})

	for of, want := range map[core.Resource]string{
		core.Events: fmt.Sprint([]core.Resource{inGroup}), inGroup: fmt.Sprint([]core.Resource{core.Events}), core.ConfigMaps: "[]",
	} {
		if got := fmt.Sprint(forms.Equivalent(of)); got != want {
			t.Errorf("%s: %s, want %s", of.GVR(), got, want)
		}
	}
	for kind, want := range map[schema.GroupVersionKind]bool{core.Events.GVK(): true, inGroup.GVK(): true, core.Pods.GVK(): false} {
		if _, ok := forms.Resource(kind); ok != want {
			t.Errorf("%s is served: %v", kind, ok)
		}
	}

	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Message: "said"}
	event.SetGroupVersionKind(core.Events.GVK())
	shown, err := forms.Convert(t.Context(), event, inGroup)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := shown.(*eventsv1.Event); !ok || e.Note != "said" || e.GroupVersionKind() != inGroup.GVK() {
		t.Errorf("shown %+v", shown)
	}
	back, err := forms.Convert(t.Context(), shown, core.Events)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := back.(*corev1.Event); !ok || e.Message != "said" || e.GroupVersionKind() != core.Events.GVK() {
		t.Errorf("back %+v", back)
	}
	if obj, err := forms.Convert(t.Context(), event, core.ConfigMaps); err == nil {
		t.Errorf("an event became %+v", obj)
	}
}
