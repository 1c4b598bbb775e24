package nodevolumelimits

import (
	"strings"
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

func disk(volume string) *corev1.AWSElasticBlockStoreVolumeSource {
	return &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: volume}
}

func inline(source corev1.VolumeSource) *core.Pod {
	return fixture.Pod("p", func(p *core.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "inline", VolumeSource: source}} })
}

// In-tree volumes count for the drivers that mount them, by what these know them by.
func TestMigratedVolumes(t *testing.T) {
	one := int32(1)
	limit := func(driver string) storagev1.CSINodeDriver {
		return storagev1.CSINodeDriver{Name: driver, Allocatable: &storagev1.VolumeNodeResources{Count: &one}}
	}
	class := "old"
	known := volumes.NewKnown(
		&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			limit("ebs.csi.aws.com"), limit("csi.vsphere.vmware.com"),
		}}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "kubernetes.io/aws-ebs"},
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "new"},
			Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: &class},
		},
	)
	vsphere := &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "[store] a"}
	for name, source := range map[string]corev1.PersistentVolumeSource{
		"a":       {AWSElasticBlockStore: disk("aws://zone/vol-a")},
		"b":       {AWSElasticBlockStore: disk("vol-b")},
		"csi-a":   {CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-a"}},
		"vsphere": {VsphereVolume: vsphere},
		"odd":     {AWSElasticBlockStore: disk("aws://zone/odd")},
	} {
		known.Set(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}})
		known.Set(&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: name},
		})
	}
	inlineA, inlineB := inline(corev1.VolumeSource{AWSElasticBlockStore: disk("vol-a")}), inline(corev1.VolumeSource{AWSElasticBlockStore: disk("vol-b")})
	for name, test := range map[string]struct {
		on   string
		pods []*core.Pod
		pod  *core.Pod
		want string // empty if it fits
	}{
		"room":                    {"n", nil, using("a"), ""},
		"full":                    {"n", []*core.Pod{using("a")}, using("b"), "node(s) exceed max volume count"},
		"the same disk":           {"n", []*core.Pod{using("a")}, using("csi-a"), ""},
		"still to be made":        {"n", []*core.Pod{using("a")}, using("new"), "node(s) exceed max volume count"},
		"inline":                  {"n", []*core.Pod{using("a")}, inlineB, "node(s) exceed max volume count"},
		"by an inline one":        {"n", []*core.Pod{inlineA}, using("b"), "node(s) exceed max volume count"},
		"inline, the same disk":   {"n", []*core.Pod{using("a")}, inlineA, ""},
		"inline, of no such disk": {"n", nil, inline(corev1.VolumeSource{AWSElasticBlockStore: disk("aws://zone/odd")}), "volume inline of pod default/p: "},
		"of no such disk":         {"n", []*core.Pod{using("a")}, using("odd"), ""},
		"not counted by upstream": {"n", []*core.Pod{using("vsphere")}, inline(corev1.VolumeSource{VsphereVolume: vsphere}), ""},
		"no driver on the node":   {"m", []*core.Pod{using("a"), inlineA}, using("b"), ""},
	} {
		status := plugintest.Filter(t.Context(), New(known), test.pod, fixture.NodeInfo(fixture.Node(test.on), test.pods...))
		if got := strings.Join(status.Reasons(), ""); status.IsSuccess() != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	event := framework.ClusterEvent{Resource: framework.AssignedPodEvent, ActionType: framework.Delete, OldPod: inlineA}
	helps := false
	for _, hint := range New(known).EventsToRegister() {
		helps = helps || hint.Covers(framework.NewPodInfo(using("b")), event)
	}
	if !helps {
		t.Error("the end of a pod with an inline volume makes no room")
	}
}
