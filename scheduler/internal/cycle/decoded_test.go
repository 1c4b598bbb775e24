package cycle

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/watch"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/cache"
	"kctl/scheduler/internal/eventhandlers"
	"kctl/scheduler/internal/nominator"
	"kctl/scheduler/internal/volumes"
	"kctl/scheduler/internal/waitingpods"
)

// The event handlers keep only those fields of pods that the plugins here use. Whatever
// other fields a pod has, it is placed and counted as if all had been kept.
func TestPluginsSayTheSameOfSlimPods(t *testing.T) {
	services := withNamespaces
	services.Volumes = volumes.NewKnown()
	none := int32(0)
	p := defaultProfile(t, services)
	for seed := range uint64(3) {
		d := dice{rand.New(rand.NewPCG(seed, 29))}
		var nodes []*core.Node
		for i := range 6 {
			nodes = append(nodes, d.node(i))
			services.Volumes.Set(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: nodes[i].Name}, Spec: storagev1.CSINodeSpec{
				Drivers: []storagev1.CSINodeDriver{{Name: "disk.csi.azure.com", Allocatable: &storagev1.VolumeNodeResources{Count: &none}}},
			}})
		}
		for name, set := range podFields() {
			pod := d.pod(0)
			pod.Spec.InitContainers = []core.Container{{Name: "init"}}
			set(pod)
			if whole, slim := outcome(t, p, nodes, pod, eventhandlers.Whole), outcome(t, p, nodes, pod, eventhandlers.Slim); whole != slim {
				t.Errorf("seed %d, a pod with %s: whole\n%s, slim\n%s", seed, name, whole, slim)
			}
		}
	}
}

// outcome is the result for a pod on a cluster that runs another like it, both
// as the event handlers keep them.
func outcome(t *testing.T, p *framework.Profile, nodes []*core.Node, pod *core.Pod, keeps eventhandlers.Keeps) string {
	t.Helper()
	data, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	sink := eventhandlers.New(t.Context(), keeps, nil, nil, nominator.New(), waitingpods.New(clock.RealClock{})).Pods().(watch.Decoder[*core.Pod])
	decode := func() *core.Pod {
		decoded, err := sink.Decode(data)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		return decoded
	}
	c := cache.New(clock.RealClock{}, cache.DefaultExpiry)
	for _, node := range nodes {
		c.SetNode(node)
	}
	resident := decode()
	resident.UID, resident.Name, resident.Spec.NodeName = types.UID("resident"), "resident", nodes[0].Name
	c.SetPod(resident)
	return place(t, c, testPlacer(), p, decode())
}

// podFields set, by name, each field of a pod and of its containers, and each
// kind of volume.
func podFields() map[string]func(*core.Pod) {
	fields := map[string]func(*core.Pod){}
	each := func(prefix string, of func(*core.Pod) any) {
		kind := reflect.TypeOf(of(&core.Pod{Spec: core.PodSpec{
			Containers: make([]core.Container, 1), InitContainers: make([]core.Container, 1), Volumes: make([]corev1.Volume, 1),
		}})).Elem()
		for i := range kind.NumField() {
			switch name := kind.Field(i).Name; name {
			case "ManagedFields", "NodeName", "TypeMeta", "DeletionTimestamp":
			default:
				fields[prefix+name] = func(pod *core.Pod) { fill(reflect.ValueOf(of(pod)).Elem().Field(i), 8) }
			}
		}
	}
	each("metadata.", func(pod *core.Pod) any { return &pod.ObjectMeta })
	each("spec.", func(pod *core.Pod) any { return &pod.Spec })
	each("status.", func(pod *core.Pod) any { return &pod.Status })
	each("containers.", func(pod *core.Pod) any { return &pod.Spec.Containers[0] })
	each("initContainers.", func(pod *core.Pod) any { return &pod.Spec.InitContainers[0] })
	delete(fields, "spec.Volumes") // a volume has one kind, below
	each("volumes.", func(pod *core.Pod) any {
		pod.Spec.Volumes = []corev1.Volume{{Name: "x"}}
		return &pod.Spec.Volumes[0].VolumeSource
	})
	return fields
}

// fill sets v and everything in it to non-zero values, down to a depth.
func fill(v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse("1")))
		return
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(1_700_000_000, 0))))
		return
	}
	if depth == 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("cpu")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth-1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth-1)
		fill(value, depth-1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth-1)
			}
		}
	default:
		panic(fmt.Sprintf("a pod has a %s", v.Type()))
	}
}
