package nodevolumelimits

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
	"kctl/scheduler/internal/volumes"
)

const driver, picky = "csi.example.com", "picky.example.com"

func attachment(name, node, volume string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
	}}
}

func using(claims ...string) *core.Pod {
	return fixture.Pod("p", func(p *core.Pod) {
		for _, name := range claims {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			}})
		}
	})
}

func TestFilter(t *testing.T) {
	two, yes := int32(2), true
	class := "made"
	known := volumes.NewKnown(
		&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: driver, Allocatable: &storagev1.VolumeNodeResources{Count: &two}}, {Name: "unlimited.example.com"},
		}}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: driver},
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: picky}, Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: &yes}},
		&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "with"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: driver, Allocatable: &storagev1.VolumeNodeResources{Count: &two}}, {Name: picky},
		}}},
		attachment("1", "with", "a"), attachment("2", "with", "nfs"), attachment("3", "with", "gone"),
	)
	for _, name := range []string{"a", "b", "c", "nfs", "again", "picky"} {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		switch name {
		case "nfs":
			volume.Spec.NFS = &corev1.NFSVolumeSource{}
		case "again":
			volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "a"}
		case "picky":
			volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: picky, VolumeHandle: "a"}
		default:
			volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}
		}
		known.Set(volume)
		known.Set(&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: name},
		})
	}
	known.Set(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "new"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: &class},
	})
	for name, test := range map[string]struct {
		on   string
		pods []*core.Pod
		pod  *core.Pod
		fits bool
	}{
		"room":                      {"n", []*core.Pod{using("a")}, using("b"), true},
		"full":                      {"n", []*core.Pod{using("a"), using("b")}, using("c"), false},
		"full, but it is there":     {"n", []*core.Pod{using("a"), using("b")}, using("b"), true},
		"by another claim":          {"n", []*core.Pod{using("a"), using("b")}, using("again"), true},
		"two at once":               {"n", []*core.Pod{using("a")}, using("b", "c"), false},
		"still to be made":          {"n", []*core.Pod{using("a"), using("b")}, using("new"), false},
		"no CSI volume":             {"n", []*core.Pod{using("a"), using("b")}, using("nfs"), true},
		"no volume":                 {"n", []*core.Pod{using("a"), using("b")}, using(), true},
		"attached, used by nobody":  {"with", []*core.Pod{using("b")}, using("c"), false},
		"attached, used again":      {"with", []*core.Pod{using("b")}, using("a"), true},
		"attached, used by another": {"with", []*core.Pod{using("a")}, using("b"), true},
		"a driver that is there":    {"with", nil, using("picky"), true},
		"a driver that is not":      {"n", nil, using("picky"), false},
		"a driver, no CSINode":      {"m", nil, using("picky"), false},
		"a node that says no limit": {"m", []*core.Pod{using("a"), using("b")}, using("c"), true},
	} {
		status := plugintest.Filter(t.Context(), New(known), test.pod, fixture.NodeInfo(fixture.Node(test.on), test.pods...))
		if status.IsSuccess() != test.fits {
			t.Errorf("%s: %v", name, status.Reasons())
		}
	}
}

// A pod without volumes makes no room for those of others.
func TestHints(t *testing.T) {
	for want, gone := range map[bool]*core.Pod{true: using("a"), false: using()} {
		event, covered := framework.ClusterEvent{Resource: framework.AssignedPodEvent, ActionType: framework.Delete, OldPod: gone}, false
		for _, hint := range New(volumes.NewKnown()).EventsToRegister() {
			covered = covered || hint.Covers(framework.NewPodInfo(using("b")), event)
		}
		if covered != want {
			t.Errorf("a pod with %d volumes went: want %v", len(gone.Spec.Volumes), want)
		}
	}
}
