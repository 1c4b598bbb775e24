package nodeports

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
)

func TestFilter(t *testing.T) {
	type port struct {
		ip       string
		protocol corev1.Protocol
		port     int32
	}
	for name, test := range map[string]struct {
		used, wanted port
		fits         bool
	}{
		"another port":                      {port{"", "TCP", 80}, port{"", "TCP", 81}, true},
		"the same":                          {port{"", "TCP", 80}, port{"", "TCP", 80}, false},
		"another protocol":                  {port{"", "TCP", 80}, port{"", "UDP", 80}, true},
		"no protocol is TCP":                {port{"", "TCP", 80}, port{"", "", 80}, false},
		"two addresses":                     {port{"10.0.0.1", "TCP", 80}, port{"10.0.0.2", "TCP", 80}, true},
		"one address":                       {port{"10.0.0.1", "TCP", 80}, port{"10.0.0.1", "TCP", 80}, false},
		"every address used, one wanted":    {port{"", "TCP", 80}, port{"10.0.0.1", "TCP", 80}, false},
		"one address used, every wanted":    {port{"10.0.0.1", "TCP", 80}, port{"0.0.0.0", "TCP", 80}, false},
		"a container port is no host port":  {port{"", "TCP", 0}, port{"", "TCP", 0}, true},
		"nothing wanted, something is used": {port{"", "TCP", 80}, port{"", "TCP", 0}, true},
	} {
		used := fixture.Pod("used", fixture.HostPort(test.used.ip, test.used.protocol, test.used.port))
		wants := fixture.Pod("wants", fixture.HostPort(test.wanted.ip, test.wanted.protocol, test.wanted.port))
		status := plugintest.Filter(t.Context(), New(), wants, fixture.NodeInfo(fixture.Node("n"), used))
		if status.IsSuccess() != test.fits {
			t.Errorf("%s: %v", name, status.Reasons())
		}
	}
}

func TestInitContainersKeepTheirPortOnlyIfTheyStay(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for name, test := range map[string]struct {
		policy *corev1.ContainerRestartPolicy
		fits   bool
	}{"ends": {nil, true}, "stays": {&always, false}} {
		pod := fixture.Pod("p", func(p *core.Pod) {
			p.Spec.InitContainers = []core.Container{{Name: "init", RestartPolicy: test.policy, Ports: []corev1.ContainerPort{{HostPort: 80}}}}
		})
		node := fixture.NodeInfo(fixture.Node("n"), fixture.Pod("used", fixture.HostPort("", "TCP", 80)))
		if status := plugintest.Filter(t.Context(), New(), pod, node); status.IsSuccess() != test.fits {
			t.Errorf("%s: %v", name, status.Reasons())
		}
	}
}
