package housekeeping

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/admission/storageprotection"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/apiserver/internal/resources/storage"
	"kctl/apiserver/internal/resources/volume"
	"kctl/proto/core"
)

// stores are those that the loops of this file follow.
type stores struct {
	pods, claims, volumes, classes *registrytest.Store
}

func protect(t *testing.T, make func(*Dependencies) (Loop, error), fill func(s *stores)) *stores {
	t.Helper()
	s := &stores{
		pods: registrytest.New(core.Pods), claims: registrytest.New(volume.Claims),
		volumes: registrytest.New(volume.Volumes), classes: registrytest.New(storage.AttributesClassResource),
	}
	fill(s)
	start(t, make, s.pods, s.claims, s.volumes, s.classes)
	return s
}

func kept(name, finalizer string, deleted bool) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "shop", Name: name, Finalizers: []string{"another/one", finalizer}}
	if deleted {
		m.DeletionTimestamp = new(metav1.Now())
	}
	return m
}

// settled is enough time for an informer to list again: the stores in memory don't
// report what was written between a list and its watch.
const settled = time.Minute

// wants checks which finalizers an object still has.
func wants(t *testing.T, what string, s *registrytest.Store, namespace, name string, protected bool) {
	t.Helper()
	pass(settled)
	left := s.Peek(namespace, name).GetFinalizers()
	if want := map[bool]int{true: 2, false: 1}[protected]; len(left) != want || left[0] != "another/one" {
		t.Errorf("%s: finalizers are %v", what, left)
	}
}

func TestClaimsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claim := func(name string, deleted bool) *corev1.PersistentVolumeClaim {
			return &corev1.PersistentVolumeClaim{ObjectMeta: kept(name, storageprotection.ClaimFinalizer, deleted)}
		}
		uses := func(name, node, claim string) *core.Pod {
			p := pod(name, node)
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}}
			return p
		}
		own := pod("own", "n1")
		own.UID = "uid-own"
		own.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
		done := own.DeepCopy() // but for a finalizer
		done.Name, done.UID = "done", "uid-done"
		done.Finalizers, done.DeletionTimestamp, done.DeletionGracePeriodSeconds = []string{"example.com/x"}, new(metav1.Now()), new(int64(0))
		foreign := own.DeepCopy()
		foreign.Name, foreign.UID = "foreign", "uid-foreign"
		generated := func(name, pod string) *corev1.PersistentVolumeClaim {
			c := claim(name, true)
			c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", UID: types.UID(pod), Controller: new(true)}}
			return c
		}
		s := protect(t, newClaimProtection, func(s *stores) {
			for _, p := range []*core.Pod{uses("one", "n1", "used"), uses("two", "n1", "used"), uses("unplaced", "", "planned"), own, done, foreign} {
				s.pods.Put(p)
			}
			for _, c := range []*corev1.PersistentVolumeClaim{claim("used", true), claim("planned", true), claim("free", true), claim("kept", false),
				generated("own-v", "uid-own"), generated("done-v", "uid-done"), generated("foreign-v", "another")} {
				s.claims.Put(c)
			}
			bare := claim("bare", false)
			bare.Finalizers = bare.Finalizers[:1]
			s.claims.Put(bare)
		})
		for name, protected := range map[string]bool{
			"used": true, "planned": false, "free": false, "kept": true, "own-v": true, "done-v": false, "foreign-v": false, "bare": true,
		} {
			wants(t, name, s.claims, "shop", name, protected)
		}
		s.claims.Put(claim("kept", true))
		wants(t, "deleted later", s.claims, "shop", "kept", false)
		for _, name := range []string{"one", "two"} {
			wants(t, "one pod is left", s.claims, "shop", "used", true)
			if _, _, err := s.pods.Delete(t.Context(), "shop", name, registry.Admission{}, &metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		wants(t, "no pod is left", s.claims, "shop", "used", false)
	})
}

// A bound claim says whether a pod that has not ended uses it, and since when.
func TestUnusedClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bound := func(name string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
			c := &corev1.PersistentVolumeClaim{ObjectMeta: kept(name, storageprotection.ClaimFinalizer, false)}
			c.Status.Phase = phase
			return c
		}
		s := protect(t, newClaimProtection, func(s *stores) {
			s.claims.Put(bound("disk", corev1.ClaimBound))
			s.claims.Put(bound("pending", corev1.ClaimPending))
		})
		var since metav1.Time
		is := func(what, name string, status corev1.ConditionStatus, reason string) {
			t.Helper()
			pass(settled)
			var got corev1.PersistentVolumeClaimCondition
			if c := unusedCondition(s.claims.Peek("shop", name).(*corev1.PersistentVolumeClaim)); c != nil {
				got = *c
			}
			if got.Status != status || got.Reason != reason {
				t.Errorf("%s: %s has %+v", what, name, got)
			}
			since = got.LastTransitionTime
		}
		is("not bound", "pending", "", "")
		is("no pod", "disk", corev1.ConditionTrue, "NoPodsUsingPVC")
		begin := since
		user := pod("user", "")
		user.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"},
		}}}
		s.pods.Put(user)
		is("a pod without a node", "disk", corev1.ConditionFalse, "PodUsingPVC")
		if !since.After(begin.Time) {
			t.Errorf("used since %v, unused since %v", since, begin)
		}
		user.Status.Phase = corev1.PodSucceeded
		s.pods.Put(user)
		is("the pod has ended", "disk", corev1.ConditionTrue, "NoPodsUsingPVC")
		s.claims.Put(bound("pending", corev1.ClaimBound))
		is("bound later", "pending", corev1.ConditionTrue, "NoPodsUsingPVC")
		late := s.claims.Peek("shop", "pending").DeepCopyObject().(*corev1.PersistentVolumeClaim)
		setUnused(late, true, metav1.Now())
		s.claims.Put(late)
		is("a write for a pod that has gone meanwhile", "pending", corev1.ConditionTrue, "NoPodsUsingPVC")
	})
}

// A claim is not used by a pod that is only kept by a finalizer, nor by one for which it would have
// been generated if another had not had it before.
func TestUnusedClaimsOfPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claim := func(name string, owner types.UID) *corev1.PersistentVolumeClaim {
			c := &corev1.PersistentVolumeClaim{ObjectMeta: kept(name, storageprotection.ClaimFinalizer, false)}
			c.Status.Phase = corev1.ClaimBound
			c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", UID: owner, Controller: new(true)}}
			return c
		}
		user := pod("user", "n1")
		user.UID, user.Finalizers = "uid-user", []string{"example.com/x"}
		user.Spec.Volumes = []corev1.Volume{
			{Name: "own", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
			{Name: "foreign", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
			{Name: "named", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "named"}}},
		}
		state := func(s corev1.ContainerState) []corev1.ContainerStatus { return []corev1.ContainerStatus{{State: s}} }
		user.Status.ContainerStatuses = state(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
		s := protect(t, newClaimProtection, func(s *stores) {
			s.pods.Put(user)
			s.claims.Put(claim("user-own", user.UID))
			s.claims.Put(claim("user-foreign", "uid-other"))
			s.claims.Put(claim("named", "uid-other"))
		})
		used := func(what string, want ...string) {
			t.Helper()
			pass(settled)
			for _, name := range []string{"user-own", "user-foreign", "named"} {
				c := unusedCondition(s.claims.Peek("shop", name).(*corev1.PersistentVolumeClaim))
				if c == nil || c.Status != unusedStatus(slices.Contains(want, name)) {
					t.Errorf("%s: %s has %+v", what, name, c)
				}
			}
		}
		used("it runs", "user-own", "named")
		user = user.DeepCopy()
		user.DeletionTimestamp = new(metav1.Now())
		s.pods.Put(user)
		used("it is being deleted", "user-own", "named")
		user = user.DeepCopy()
		user.Status.ContainerStatuses = state(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
		s.pods.Put(user)
		used("its containers have ended")
	})
}

func TestVolumesInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
			v := &corev1.PersistentVolume{ObjectMeta: kept("disk", storageprotection.VolumeFinalizer, true)}
			v.Namespace, v.Status.Phase = "", phase
			return v
		}
		s := protect(t, newVolumeProtection, func(s *stores) { s.volumes.Put(of(corev1.VolumeBound)) })
		wants(t, "bound", s.volumes, "", "disk", true)
		s.volumes.Put(of(corev1.VolumeReleased))
		wants(t, "released", s.volumes, "", "disk", false)
	})
}

func TestAttributesClassesInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c"}}
		claim.Status.CurrentVolumeAttributesClassName = new("fast")
		disk := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "d"}}
		disk.Spec.VolumeAttributesClassName = new("fast")
		s := protect(t, newClassProtection, func(s *stores) {
			s.claims.Put(claim)
			s.volumes.Put(disk)
			for _, name := range []string{"fast", "slow"} {
				class := &storagev1.VolumeAttributesClass{ObjectMeta: kept(name, storageprotection.AttributesClassFinalizer, true)}
				class.Namespace = ""
				s.classes.Put(class)
			}
		})
		wants(t, "of nothing", s.classes, "", "slow", false)
		claim.Status.CurrentVolumeAttributesClassName = nil
		s.claims.Put(claim)
		pass(classRecheckInterval)
		wants(t, "of a volume", s.classes, "", "fast", true)
		disk.Spec.VolumeAttributesClassName = nil
		s.volumes.Put(disk)
		pass(classRecheckInterval)
		wants(t, "of nothing any more", s.classes, "", "fast", false)
	})
}
