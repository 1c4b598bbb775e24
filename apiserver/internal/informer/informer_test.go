package informer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

func onNode(name, node string) *core.Pod {
	return &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: core.PodSpec{NodeName: node}}
}

// follow runs an informer inside a synctest bubble.
func follow(t *testing.T, m *Informer[Pod]) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = m.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	<-m.Synced()
	synctest.Wait() // until it watches: earlier writes would reach it only after a while
}

func TestMirrorFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := registrytest.New(core.Pods, onNode("a", "n1"), onNode("b", "n2"))
		m := New(store, PodOf, Options[Pod]{Index: PodNode}, clock.RealClock{}, zap.NewNop())
		var changes []string
		m.OnChange(func(key Key, old, new *Pod) {
			kind := map[[2]bool]string{{false, true}: "+", {true, true}: "~", {true, false}: "-"}[[2]bool{old != nil, new != nil}]
			changes = append(changes, kind+key.Name)
		})
		follow(t, m)
		store.Put(onNode("c", "n1"))
		store.Put(onNode("a", "n3"))
		if _, _, err := store.Delete(t.Context(), "shop", "b", registry.Admission{}, &metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(m.List()) != 2 || len(m.ByIndex("n1")) != 1 || len(m.ByIndex("n2")) != 0 || len(m.ByIndex("n3")) != 1 || len(m.index) != 2 {
			t.Errorf("all %v, index %v", m.List(), m.index)
		}
		if _, ok := m.Get("shop", "b"); ok {
			t.Error("b is still there")
		}
		slices.Sort(changes[:2]) // a list has no order
		if !slices.Equal(changes, []string{"+a", "+b", "+c", "~a", "-b"}) {
			t.Errorf("changes %v", changes)
		}
	})
}

func TestMirrorReaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := registrytest.New(core.Pods, onNode("a", "n1"))
		m := New(store, PodOf, Options[Pod]{Index: PodNode}, clock.RealClock{}, zap.NewNop())
		follow(t, m)
		store.Put(onNode("b", "n1"))
		now, err := store.Get(t.Context(), "shop", "b", "")
		if err != nil {
			t.Fatal(err)
		}
		if m.WaitForRevision(t.Context(), now.Revision); len(m.ByIndex("n1")) != 2 {
			t.Errorf("at revision %d there are %v", now.Revision, m.List())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // the bubble's
		defer cancel()
		if m.WaitForRevision(ctx, now.Revision+1); ctx.Err() == nil {
			t.Error("it has what has not happened")
		}
	})
}

func TestMirrorStartsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := registrytest.New(core.Pods, onNode("a", "n1"), onNode("b", "n1"))
		m := New(store, PodOf, Options[Pod]{}, clock.RealClock{}, zap.NewNop())
		gone := 0
		m.OnChange(func(_ Key, _, new *Pod) {
			if new == nil {
				gone++
			}
		})
		follow(t, m)
		store.Fail(errors.New("etcd is away"))
		if _, _, err := store.Delete(t.Context(), "shop", "b", registry.Admission{}, &metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(m.List()) != 2 {
			t.Errorf("forgot what it knew while the store is away: %v", m.List())
		}
		store.Fail(nil)
		<-clock.RealClock{}.After(2 * relistPolicy.Max) // the bubble's clock
		synctest.Wait()
		if len(m.List()) != 1 || gone != 1 {
			t.Errorf("%v, %d gone", m.List(), gone)
		}
	})
}

func TestMirrorOfSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := registrytest.New(core.Pods, onNode("a", "n1"), onNode("b", "n1"))
		m := New(store, PodOf, Options[Pod]{Fields: fields.OneTermEqualSelector("metadata.name", "a")}, clock.RealClock{}, zap.NewNop())
		follow(t, m)
		store.Put(onNode("c", "n1"))
		synctest.Wait()
		if all := m.List(); len(all) != 1 || all[0].Name != "a" {
			t.Errorf("%v", all)
		}
	})
}

func TestPodReferences(t *testing.T) {
	secret := func(name string) *corev1.SecretKeySelector {
		return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
	}
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	pod := &core.Pod{Spec: core.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{named("pull")},
		InitContainers:   []core.Container{{Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: secret("init")}}}}},
		Containers: []core.Container{{
			Env: []corev1.EnvVar{{Name: "plain"},
				{ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named("env")}}}},
			EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("from")}},
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("all")}}},
		}},
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "volume"}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("files")}}},
			{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: named("projected")}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("kube-root-ca.crt")}},
			}}}},
		},
	}}
	ref := func(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }
	for _, source := range []corev1.VolumeSource{
		{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "azure"}},
		{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: ref("csi")}},
		{CephFS: &corev1.CephFSVolumeSource{SecretRef: ref("ceph")}},
		{Cinder: &corev1.CinderVolumeSource{SecretRef: ref("cinder")}},
		{FlexVolume: &corev1.FlexVolumeSource{SecretRef: ref("flex")}},
		{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: ref("iscsi")}},
		{RBD: &corev1.RBDVolumeSource{SecretRef: ref("rbd")}},
		{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: ref("scaleio")}},
		{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: ref("storageos")}},
		{ISCSI: &corev1.ISCSIVolumeSource{}},
	} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: source})
	}
	got := PodOf(pod)
	secrets := []string{
		"pull", "init", "from", "volume", "projected", "azure", "csi", "ceph", "cinder", "flex", "iscsi", "rbd", "scaleio", "storageos",
	}
	if !slices.Equal(got.Secrets, secrets) {
		t.Errorf("secrets %v", got.Secrets)
	}
	if !slices.Equal(got.ConfigMaps, []string{"all", "env", "files", "kube-root-ca.crt"}) {
		t.Errorf("config maps %v", got.ConfigMaps)
	}
	if !slices.Equal(got.Claims, []string{"disk"}) {
		t.Errorf("claims %v", got.Claims)
	}
}
