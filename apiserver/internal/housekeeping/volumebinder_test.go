package housekeeping

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/apiserver/internal/resources/storage"
	"kctl/apiserver/internal/resources/volume"
	"kctl/proto/core"
)

// binding is a volume binder over stores in memory.
type binding struct{ claims, volumes, events *registrytest.Store }

func bindVolumes(t *testing.T, objects ...core.Object) *binding {
	t.Helper()
	b := &binding{claims: registrytest.New(volume.Claims), volumes: registrytest.New(volume.Volumes), events: registrytest.New(core.Events)}
	classes := registrytest.New(storage.ClassResource)
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	classes.Put(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &wait})
	classes.Put(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "made"}, Provisioner: "example.com/maker"})
	for _, obj := range objects {
		b.put(obj)
	}
	start(t, newVolumeBinder, registrytest.New(core.Pods), b.claims, b.volumes, classes, b.events)
	return b
}

func (b *binding) put(obj core.Object) {
	if obj.GetNamespace() == "" {
		b.volumes.Put(obj)
	} else {
		b.claims.Put(obj)
	}
}

func wish(name, class, size string, change ...func(c *corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func disk(name, class, size string, change ...func(v *corev1.PersistentVolume)) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
		},
	}
	for _, f := range change {
		f(v)
	}
	return v
}

func keptFor(name, uid string) func(v *corev1.PersistentVolume) {
	return func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: name, UID: types.UID(uid)}
	}
}

// are checks the state of claims and volumes: "PHASE VOLUME" and "PHASE CLAIM".
func (b *binding) are(t *testing.T, want map[string]string) {
	t.Helper()
	pass(settled)
	for name, state := range want {
		got := ""
		if c, ok := b.claims.Peek("shop", name).(*corev1.PersistentVolumeClaim); ok {
			got = string(c.Status.Phase) + " " + c.Spec.VolumeName
		} else if v, ok := b.volumes.Peek("", name).(*corev1.PersistentVolume); ok {
			got = string(v.Status.Phase) + " " + claimOf(v).Name
		}
		if strings.TrimSpace(got) != state {
			t.Errorf("%s is %q, want %q", name, got, state)
		}
	}
}

func (b *binding) says(t *testing.T, message string) {
	t.Helper()
	list, err := b.events.List(t.Context(), "", registry.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, item := range list.Items {
		if strings.Contains(string(item.JSON), message) {
			found++
		}
	}
	if found != 1 {
		t.Errorf("people are told %d times: %s", found, message)
	}
}

// A claim gets the smallest volume of its class that fits, or the one that was
// reserved for it.
func TestClaimsGetTheVolumesThatFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		many := func(v *corev1.PersistentVolume) {
			v.Spec.AccessModes = append(v.Spec.AccessModes, corev1.ReadWriteMany)
		}
		leaving := func(v *corev1.PersistentVolume) {
			v.DeletionTimestamp, v.Finalizers = new(metav1.Now()), []string{"x"}
		}
		b := bindVolumes(t,
			disk("big", "hand", "9Gi"), disk("right", "hand", "2Gi"), disk("small", "hand", "1Gi"),
			disk("many", "hand", "2Gi", many), disk("other", "else", "2Gi"), disk("kept", "hand", "5Gi", keptFor("expected", "")),
			disk("named", "hand", "3Gi"), disk("leaves", "hand", "2Gi", leaving))
		b.are(t, map[string]string{"right": "Available", "kept": "Available expected"})
		b.put(wish("first", "hand", "2Gi"))
		b.put(wish("expected", "hand", "1Gi"))
		b.put(wish("names", "hand", "1Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "named" }))
		b.are(t, map[string]string{
			"first": "Bound right", "right": "Bound first", "expected": "Bound kept", "kept": "Bound expected", "names": "Bound named", "named": "Bound names",
			"big": "Available", "small": "Available", "many": "Available", "other": "Available",
		})
		first := b.claims.Peek("shop", "first").(*corev1.PersistentVolumeClaim)
		if capacity := first.Status.Capacity[corev1.ResourceStorage]; capacity.String() != "2Gi" || len(first.Status.AccessModes) != 1 ||
			first.Annotations[bindCompleted] != "yes" || first.Annotations[boundByController] != "yes" {
			t.Errorf("first is %+v with %v", first.Status, first.Annotations)
		}
		if right := b.volumes.Peek("", "right").(*corev1.PersistentVolume); right.Spec.ClaimRef.UID != "uid-first" || right.Annotations[boundByController] != "yes" {
			t.Errorf("right is kept for %+v with %v", right.Spec.ClaimRef, right.Annotations)
		}
		if kept := b.volumes.Peek("", "kept").(*corev1.PersistentVolume); kept.Spec.ClaimRef.UID != "uid-expected" || kept.Annotations[boundByController] != "" {
			t.Errorf("kept is kept for %+v with %v", kept.Spec.ClaimRef, kept.Annotations)
		}
	})
}

// Claims without a volume say why, and get one when it comes.
func TestClaimsWithoutAVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bindVolumes(t,
			wish("classless", "", "1Gi"), wish("unknown", "none", "1Gi"), wish("waits", "late", "1Gi"), wish("made", "made", "1Gi"),
			wish("names", "hand", "5Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "tiny" }),
			wish("robs", "hand", "1Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "theirs" }),
			disk("tiny", "hand", "1Gi"), disk("theirs", "hand", "1Gi", keptFor("somebody", "")), disk("later", "late", "1Gi"))
		b.are(t, map[string]string{
			"classless": "Pending", "unknown": "Pending", "waits": "Pending", "made": "Pending", "names": "Pending tiny", "robs": "Pending theirs",
			"later": "Available",
		})
		for _, message := range []string{
			"no persistent volumes available for this claim and no storage class is set", `storageclass.storage.k8s.io \"none\" not found`,
			"waiting for first consumer to be created before binding", "by the external provisioner 'example.com/maker'",
			`Cannot bind to requested volume \"tiny\": requested PV is too small`, `volume \"theirs\" already bound to a different claim.`,
		} {
			b.says(t, message)
		}
		if c := b.claims.Peek("shop", "made"); c.GetAnnotations()[provisioner] != "example.com/maker" {
			t.Errorf("annotations of what is to be made: %v", c.GetAnnotations())
		}
		// Volumes chosen by the scheduler, made by a provisioner, and set by people.
		b.put(disk("later", "late", "1Gi", keptFor("waits", "uid-waits")))
		b.put(disk("fresh", "made", "1Gi", keptFor("made", "uid-made")))
		b.put(disk("plain", "", "1Gi"))
		b.are(t, map[string]string{"waits": "Bound later", "made": "Bound fresh", "fresh": "Bound made", "classless": "Bound plain", "plain": "Bound classless"})
	})
}

// A volume whose claim is gone is Released, and stays so; one whose binding was
// never completed is free again.
func TestVolumesAreReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := func(p corev1.PersistentVolumeReclaimPolicy, by string) func(v *corev1.PersistentVolume) {
			return func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy, v.Annotations = p, map[string]string{provisionedBy: by}
			}
		}
		b := bindVolumes(t, wish("c", "hand", "1Gi"), disk("v", "hand", "1Gi", policy(corev1.PersistentVolumeReclaimRetain, "")))
		b.are(t, map[string]string{"c": "Bound v", "v": "Bound c"})
		b.put(disk("vain", "hand", "1Gi", keptFor("c", "uid-c"), func(v *corev1.PersistentVolume) { v.Annotations = map[string]string{boundByController: "yes"} }))
		b.put(disk("hers", "hand", "1Gi", keptFor("c", "uid-c")))
		b.put(disk("deleted", "hand", "1Gi", keptFor("x", "uid-x"), policy(corev1.PersistentVolumeReclaimDelete, "")))
		b.put(disk("provisioned", "hand", "1Gi", keptFor("x", "uid-x"), policy(corev1.PersistentVolumeReclaimDelete, "example.com/maker")))
		b.are(t, map[string]string{"vain": "Available", "hers": "Available c", "deleted": "Failed x", "provisioned": "Released x"})
		b.says(t, `error getting deleter volume plugin for volume \"deleted\": no deletable volume plugin matched`)
		if _, _, err := b.claims.Delete(t.Context(), "shop", "c", registry.Admission{}, &metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		b.are(t, map[string]string{"v": "Released c"})
		b.put(wish("c", "hand", "9Gi", func(c *corev1.PersistentVolumeClaim) { c.UID = "another" }))
		b.are(t, map[string]string{"v": "Released c", "c": "Pending"})
	})
}

// A claim whose volume is gone is Lost for good.
func TestClaimsLoseTheirVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bindVolumes(t, wish("c", "hand", "1Gi"), disk("v", "hand", "1Gi"))
		b.are(t, map[string]string{"c": "Bound v"})
		if _, _, err := b.volumes.Delete(t.Context(), "", "v", registry.Admission{}, &metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		b.are(t, map[string]string{"c": "Lost v"})
		b.says(t, "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
	})
}
