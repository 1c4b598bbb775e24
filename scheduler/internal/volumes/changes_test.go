package volumes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/proto/watch"
	"kctl/scheduler/framework"
)

// Waiting pods hear of changes that may help them, and of no others.
func TestWhichChangesAreTold(t *testing.T) {
	var told []framework.ClusterEvent
	v := New(clock.RealClock{}, func(event framework.ClusterEvent) { told = append(told, event) })
	named := metav1.ObjectMeta{Name: "a"}
	labelled := metav1.ObjectMeta{Name: "a", Labels: map[string]string{"x": "y"}}
	class := func(meta metav1.ObjectMeta, zones ...string) func(watch.Type) {
		return func(change watch.Type) {
			c := &storagev1.StorageClass{ObjectMeta: meta}
			if len(zones) > 0 {
				c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: zones}}}}
			}
			v.classes.Apply(change, c)
		}
	}
	node := func(meta metav1.ObjectMeta, drivers ...storagev1.CSINodeDriver) func(watch.Type) {
		return func(change watch.Type) {
			v.nodes.Apply(change, &storagev1.CSINode{ObjectMeta: meta, Spec: storagev1.CSINodeSpec{Drivers: drivers}})
		}
	}
	mounts := func(name string, count int32) storagev1.CSINodeDriver {
		return storagev1.CSINodeDriver{Name: name, Allocatable: &storagev1.VolumeNodeResources{Count: &count}}
	}
	driver := func(meta metav1.ObjectMeta, capacity bool) func(watch.Type) {
		return func(change watch.Type) {
			v.drivers.Apply(change, &storagev1.CSIDriver{ObjectMeta: meta, Spec: storagev1.CSIDriverSpec{StorageCapacity: &capacity}})
		}
	}
	room := func(meta metav1.ObjectMeta, capacity string, largest ...string) func(watch.Type) {
		return func(change watch.Type) {
			c := &storagev1.CSIStorageCapacity{ObjectMeta: meta, Capacity: new(resource.MustParse(capacity))}
			for _, most := range largest {
				c.MaximumVolumeSize = new(resource.MustParse(most))
			}
			v.capacities.Apply(change, c)
		}
	}
	for name, test := range map[string]struct {
		before, after func(watch.Type)
		told          bool
	}{
		"a class gets a label":              {class(named), class(labelled), false},
		"a class allows another zone":       {class(named, "a"), class(named, "b"), true},
		"a node gets a label":               {node(named, mounts("d", 1)), node(labelled, mounts("d", 1)), false},
		"a node mounts fewer":               {node(named, mounts("d", 2)), node(named, mounts("d", 1)), false},
		"a node mounts more":                {node(named, mounts("d", 1)), node(named, mounts("d", 2)), true},
		"a node's limit goes":               {node(named, mounts("d", 1)), node(named, storagev1.CSINodeDriver{Name: "d"}), true},
		"a node gets a limit":               {node(named, storagev1.CSINodeDriver{Name: "d"}), node(named, mounts("d", 9)), false},
		"a node gets a driver":              {node(named, mounts("d", 1)), node(named, mounts("d", 1), mounts("e", 1)), true},
		"a driver gets a label":             {driver(named, true), driver(labelled, true), false},
		"a driver counts its room":          {driver(named, false), driver(named, true), false},
		"a driver no longer counts it":      {driver(named, true), driver(named, false), true},
		"less room":                         {room(named, "2Gi"), room(named, "1Gi"), false},
		"as much room":                      {room(named, "1Gi"), room(labelled, "1024Mi"), false},
		"more room":                         {room(named, "1Gi"), room(named, "2Gi"), true},
		"more room, for volumes as before":  {room(named, "1Gi", "1Gi"), room(named, "2Gi", "1Gi"), false},
		"less room, for larger volumes yet": {room(named, "9Gi", "1Gi"), room(named, "8Gi", "2Gi"), true},
	} {
		test.before(watch.Added)
		told = nil
		changed := v.Changed()
		test.after(watch.Modified)
		if got := len(told) > 0; got != test.told {
			t.Errorf("%s: told %v, want %t", name, told, test.told)
		}
		select {
		case <-changed:
		default:
			t.Errorf("%s: who waits for a volume to be bound is not woken", name)
		}
		test.after(watch.Deleted)
	}
}
