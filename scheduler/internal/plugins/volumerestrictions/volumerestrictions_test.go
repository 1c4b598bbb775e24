package volumerestrictions

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
	"kctl/scheduler/internal/volumes"
)

func with(sources ...corev1.VolumeSource) *core.Pod {
	return fixture.Pod("p", func(p *core.Pod) {
		for _, source := range sources {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{VolumeSource: source})
		}
	})
}

func gce(name string, readOnly bool) corev1.VolumeSource {
	return corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: name, ReadOnly: readOnly}}
}

func ebs(id string) corev1.VolumeSource {
	return corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: id, ReadOnly: true}}
}

func iscsi(iqn string, readOnly bool) corev1.VolumeSource {
	return corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{IQN: iqn, ReadOnly: readOnly}}
}

func rbd(image string, readOnly bool, monitors ...string) corev1.VolumeSource {
	return corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{RBDPool: "p", RBDImage: image, CephMonitors: monitors, ReadOnly: readOnly}}
}

func TestDisks(t *testing.T) {
	for name, test := range map[string]struct {
		there, comes corev1.VolumeSource
		fits         bool
	}{
		"one disk":                    {gce("a", false), gce("a", false), false},
		"one disk, one writes":        {gce("a", true), gce("a", false), false},
		"one disk, both read":         {gce("a", true), gce("a", true), true},
		"two disks":                   {gce("a", false), gce("b", false), true},
		"one EBS volume, both read":   {ebs("a"), ebs("a"), false},
		"two EBS volumes":             {ebs("a"), ebs("b"), true},
		"one target":                  {iscsi("a", false), iscsi("a", true), false},
		"one target, both read":       {iscsi("a", true), iscsi("a", true), true},
		"one image":                   {rbd("a", false, "m1", "m2"), rbd("a", false, "m2"), false},
		"one image, both read":        {rbd("a", true, "m1"), rbd("a", true, "m1"), true},
		"one image, another cluster":  {rbd("a", false, "m1"), rbd("a", false, "m2"), true},
		"one name, two kinds of disk": {gce("a", false), ebs("a"), true},
	} {
		node := fixture.NodeInfo(fixture.Node("n"), with(test.there))
		status := plugintest.Filter(t.Context(), New(volumes.NewKnown()), with(test.comes), node)
		if status.IsSuccess() != test.fits || !test.fits && status.Code() != framework.Unschedulable {
			t.Errorf("%s: %v %v", name, status.Code(), status.Reasons())
		}
	}
}

// A ReadWriteOncePod claim keeps a second pod off all nodes, unless the first
// would be evicted.
func TestOncePod(t *testing.T) {
	claim := func(name string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{mode}},
		}
	}
	source := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	plugin := New(volumes.NewKnown(claim("once", corev1.ReadWriteOncePod), claim("many", corev1.ReadWriteMany)))
	node, other := fixture.NodeInfo(fixture.Node("a")), fixture.NodeInfo(fixture.Node("b"), with(source("once"), source("many")))
	if status := plugintest.Filter(t.Context(), plugin, with(source("many")), node, other); !status.IsSuccess() {
		t.Errorf("a claim that many may have: %v", status.Reasons())
	}
	state, pod := framework.NewCycleState(nil), framework.NewPodInfo(with(source("once")))
	state.Nodes = []*framework.NodeInfo{node, other}
	if _, status := plugin.PreFilter(t.Context(), state, pod); !status.IsSuccess() {
		t.Fatal(status.Reasons())
	}
	if status := plugin.Filter(t.Context(), state, pod, node); status.Message() != refusedUse.Message() || status.Code() != framework.Unschedulable {
		t.Errorf("in use elsewhere: %v %q", status.Code(), status.Message())
	}
	whatIf := state.Clone()
	plugin.RemovePod(t.Context(), whatIf, pod, other.Pods[0], other)
	if status := plugin.Filter(t.Context(), whatIf, pod, node); !status.IsSuccess() {
		t.Errorf("once the other is gone: %q", status.Message())
	}
	plugin.AddPod(t.Context(), whatIf, pod, other.Pods[0], other)
	if plugin.Filter(t.Context(), whatIf, pod, node).IsSuccess() || plugin.Filter(t.Context(), state, pod, node).IsSuccess() {
		t.Error("put back, it is in use no more")
	}
}

// Only a pod that was in the way brings a pod back when it goes.
func TestHints(t *testing.T) {
	claim := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	elsewhere := with(claim("a"))
	elsewhere.Namespace = "other"
	waits := framework.NewPodInfo(with(gce("d", false), claim("a"), corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}))
	for name, test := range map[string]struct {
		gone *core.Pod
		want bool
	}{
		"with the disk":              {with(gce("d", true)), true},
		"with another disk":          {with(gce("e", false)), false},
		"with the claim":             {with(claim("a")), true},
		"with another claim":         {with(claim("b")), false},
		"with another's of its name": {elsewhere, false},
		"with no volume":             {with(), false},
	} {
		event := framework.ClusterEvent{Resource: framework.AssignedPodEvent, ActionType: framework.Delete, OldPod: test.gone}
		if New(volumes.NewKnown()).EventsToRegister()[0].Covers(waits, event) != test.want {
			t.Errorf("%s: want %v", name, test.want)
		}
	}
}
