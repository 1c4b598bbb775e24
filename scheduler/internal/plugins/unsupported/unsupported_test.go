package unsupported

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
)

func TestWhatIsNotSupportedIsRefusedByName(t *testing.T) {
	volume := func(source corev1.VolumeSource) func(*core.Pod) {
		return func(p *core.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: source}}
		}
	}
	for want, change := range map[string]func(*core.Pod){
		"DynamicResources": func(p *core.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{}} },
		"GangScheduling":   func(p *core.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{} },
		`volume "data" of type persistentVolumeClaim`: volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}),
		"VolumeBinding":      volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}),
		"NodeVolumeLimits":   volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}),
		"VolumeRestrictions": volume(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}}),
	} {
		status := plugintest.Filter(t.Context(), New(), fixture.Pod("p", change), fixture.NodeInfo(fixture.Node("n")))
		if status.Code() != framework.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), want) {
			t.Errorf("%s: %v %q", want, status.Code(), status.Message())
		}
	}
	if status := plugintest.Filter(t.Context(), New(), fixture.Pod("p", volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})), fixture.NodeInfo(fixture.Node("n"))); !status.IsSuccess() {
		t.Errorf("an emptyDir is refused: %q", status.Message())
	}
}
