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
	for want, change := range map[string]func(*core.Pod){
		"DynamicResources": func(p *core.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{}} },
		"GangScheduling":   func(p *core.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{} },
	} {
		status := plugintest.Filter(t.Context(), New(), fixture.Pod("p", change), fixture.NodeInfo(fixture.Node("n")))
		if status.Code() != framework.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), want) {
			t.Errorf("%s: %v %q", want, status.Code(), status.Message())
		}
	}
	if status := plugintest.Filter(t.Context(), New(), fixture.Pod("p"), fixture.NodeInfo(fixture.Node("n"))); !status.IsSuccess() {
		t.Errorf("a plain pod is refused: %q", status.Message())
	}
}
