package admit

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/proto/core"
)

func node() *core.Node {
	return &core.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"disk": "ssd"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "gone", Effect: corev1.TaintEffectNoExecute}, {Key: "soft", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			"example.com/dongle": resource.MustParse("2"), corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			corev1.ResourcePods: resource.MustParse("3"),
		}},
	}
}

func pod(name string, change func(*core.PodSpec)) *core.Pod {
	p := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	p.Spec = corev1.PodSpec{
		NodeName:    "n",
		Tolerations: []corev1.Toleration{{Key: "gone", Operator: corev1.TolerationOpExists}},
		Containers: []core.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
		}}},
	}
	if change != nil {
		change(&p.Spec)
	}
	return p
}

func TestPod(t *testing.T) {
	port := func(ip string) func(*core.PodSpec) {
		return func(s *core.PodSpec) {
			s.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, Protocol: corev1.ProtocolTCP, HostIP: ip}}
		}
	}
	cpu := func(quantity string) func(*core.PodSpec) {
		return func(s *core.PodSpec) {
			s.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(quantity)
		}
	}
	extended := func(name corev1.ResourceName, quantity string) func(*core.PodSpec) {
		return func(s *core.PodSpec) {
			s.Containers[0].Resources.Requests[name] = resource.MustParse(quantity)
			s.Containers[0].Resources.Limits = corev1.ResourceList{name: resource.MustParse(quantity)}
		}
	}
	for _, c := range []struct {
		name   string
		pod    *core.Pod
		others []*core.Pod
		static bool
		reason string
	}{
		{"fits", pod("p", nil), []*core.Pod{pod("o", cpu("1500m"))}, false, ""},
		{"too much cpu", pod("p", nil), []*core.Pod{pod("o", cpu("1501m"))}, false, "OutOfcpu"},
		{"all dongles", pod("p", extended("example.com/dongle", "2")), nil, false, ""},
		{"too many dongles", pod("p", extended("example.com/dongle", "1")), []*core.Pod{pod("o", extended("example.com/dongle", "2"))}, false,
			"OutOfexample.com/dongle"},
		{"what the node does not count", pod("p", extended("example.com/licence", "9")), nil, false, ""},
		{"too much memory", pod("p", func(s *core.PodSpec) {
			s.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("2Gi")
		}), nil, false, "OutOfmemory"},
		{"too many pods", pod("p", cpu("0")), []*core.Pod{pod("a", cpu("0")), pod("b", cpu("0")), pod("c", cpu("0"))}, false, "OutOfpods"},
		{"wants another disk", pod("p", func(s *core.PodSpec) { s.NodeSelector = map[string]string{"disk": "hdd"} }), nil, false, "NodeAffinity"},
		{"another node's", pod("p", func(s *core.PodSpec) { s.NodeName = "m" }), nil, false, "NodeName"},
		{"driven away", pod("p", func(s *core.PodSpec) { s.Tolerations = nil }), nil, false, "TaintToleration"},
		{"static pods stay", pod("p", func(s *core.PodSpec) { s.Tolerations = nil }), nil, true, ""},
		{"port taken", pod("p", port("")), []*core.Pod{pod("o", port("127.0.0.1"))}, false, "NodePorts"},
		{"a sidecar's port taken", pod("p", port("")), []*core.Pod{pod("o", func(s *core.PodSpec) {
			always := corev1.ContainerRestartPolicyAlways
			port("")(s)
			s.InitContainers = []core.Container{{Name: "sidecar", RestartPolicy: &always, Ports: s.Containers[0].Ports}}
			s.Containers[0].Ports = nil
		})}, false, "NodePorts"},
		{"port on another address", pod("p", port("127.0.0.2")), []*core.Pod{pod("o", port("127.0.0.1"))}, false, ""},
		{"another OS", pod("p", func(s *core.PodSpec) { s.OS = &corev1.PodOS{Name: corev1.Windows} }), nil, false, "PodOSNotSupported"},
		{"another OS by its label", labelled(pod("p", nil), "windows"), nil, false, "PodOSSelectorNodeLabelDoesNotMatch"},
		{"this OS by its label", labelled(pod("p", nil), "linux"), nil, false, ""},
		{"a claim", pod("p", func(s *core.PodSpec) { s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }), nil, false, "UnsupportedPodFeature"},
	} {
		got := Pod(c.pod, c.others, node(), c.static, Features)
		if got.Reason != c.reason || got.Admitted != (c.reason == "") {
			t.Errorf("%s: %+v, want reason %q", c.name, got, c.reason)
		}
		if !got.Admitted && got.Message == "" {
			t.Errorf("%s: no message", c.name)
		}
	}
}

func labelled(pod *core.Pod, os string) *core.Pod {
	pod.Labels = map[string]string{corev1.LabelOSStable: os}
	return pod
}

func TestSupplementalGroups(t *testing.T) {
	policy := func(p corev1.SupplementalGroupsPolicy, phase corev1.PodPhase) *core.Pod {
		of := pod("p", func(s *core.PodSpec) { s.SecurityContext = &corev1.PodSecurityContext{SupplementalGroupsPolicy: &p} })
		of.Status.Phase = phase
		return of
	}
	reports := func(supported bool) *runtimeapi.StatusResponse {
		return &runtimeapi.StatusResponse{Features: &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: supported}}
	}
	for name, c := range map[string]struct {
		pod     *core.Pod
		runtime *runtimeapi.StatusResponse
		refused bool
	}{
		"no policy":        {pod("p", nil), reports(false), false},
		"merged":           {policy(corev1.SupplementalGroupsPolicyMerge, ""), reports(false), false},
		"strict":           {policy(corev1.SupplementalGroupsPolicyStrict, corev1.PodPending), reports(false), true},
		"an old runtime":   {policy(corev1.SupplementalGroupsPolicyStrict, ""), &runtimeapi.StatusResponse{}, true},
		"supported":        {policy(corev1.SupplementalGroupsPolicyStrict, ""), reports(true), false},
		"runs":             {policy(corev1.SupplementalGroupsPolicyStrict, corev1.PodRunning), reports(false), false},
		"not reported yet": {policy(corev1.SupplementalGroupsPolicyStrict, ""), nil, false},
	} {
		got := SupplementalGroups(c.pod, c.runtime)
		if got.Admitted == c.refused || c.refused && (got.Reason != "SupplementalGroupsPolicyNotSupported" ||
			got.Message != "SupplementalGroupsPolicy=Strict is not supported in this node") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestChecksSayWhatIsMissing(t *testing.T) {
	got := Pod(pod("p", nil), nil, node(), false, func(*core.Pod) error { return fmt.Errorf("volume %q: %w", "v", errors.New("nfs is not supported")) })
	if got.Admitted || !strings.Contains(got.Message, "nfs is not supported") {
		t.Errorf("%+v", got)
	}
}

func TestSysctls(t *testing.T) {
	hostIPC := func(s *core.PodSpec) { s.HostIPC = true }
	hostNetwork := func(s *core.PodSpec) { s.HostNetwork = true }
	for _, c := range []struct {
		name    string
		host    func(*core.PodSpec)
		allowed []string
		refused bool
	}{
		{"kernel.shm_rmid_forced", nil, nil, false},
		{"net/ipv4/tcp_syncookies", nil, nil, false},
		{"net.ipv4.tcp_syncookies", hostNetwork, nil, true},
		{"kernel.msgmax", nil, nil, true},
		{"kernel.msgmax", nil, []string{"net.core.somaxconn", "kernel.msg*"}, false},
		{"kernel.msgmax", hostIPC, []string{"kernel.msg*"}, true},
		{"net/core/somaxconn", nil, []string{"net.core.somaxconn"}, false},
		{"net.core.somaxconn", hostNetwork, []string{"net.core.somaxconn"}, true},
		{"net.core.somaxconns", nil, []string{"net.core.somaxconn"}, true},
	} {
		p := pod("p", c.host)
		p.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: c.name, Value: "1"}}}
		if got := Sysctls(p, c.allowed); got.Admitted == c.refused || c.refused && got.Reason != "SysctlForbidden" {
			t.Errorf("%s beside %q: %+v", c.name, c.allowed, got)
		}
	}
	for pattern, refused := range map[string]bool{"kernel.msg*": false, "net.core.somaxconn": false, "vm.swappiness": true, "kernel.*": true, "net.*.x": true} {
		if err := CheckSysctlPattern(pattern); (err != nil) != refused {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

func TestAppArmor(t *testing.T) {
	profile := func(kind corev1.AppArmorProfileType) *corev1.SecurityContext {
		return &corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: kind}}
	}
	ofPod := func(s *core.PodSpec) {
		s.SecurityContext = &corev1.PodSecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}}
	}
	for name, c := range map[string]struct {
		change   func(*core.PodSpec)
		phase    corev1.PodPhase
		enforced bool
		refused  bool
	}{
		"none":     {},
		"of a pod": {change: ofPod, refused: true},
		"enforced": {change: ofPod, enforced: true},
		"runs":     {change: ofPod, phase: corev1.PodRunning},
		"container": {change: func(s *core.PodSpec) { s.Containers[0].SecurityContext = profile(corev1.AppArmorProfileTypeLocalhost) }, phase: corev1.PodPending,
			refused: true},
		"unconfined": {change: func(s *core.PodSpec) {
			ofPod(s)
			s.Containers[0].SecurityContext = profile(corev1.AppArmorProfileTypeUnconfined)
		}},
		"init container": {change: func(s *core.PodSpec) {
			s.InitContainers = []core.Container{{SecurityContext: profile(corev1.AppArmorProfileTypeRuntimeDefault)}}
		}, refused: true},
	} {
		p := pod("p", c.change)
		p.Status.Phase = c.phase
		if got := AppArmor(p, c.enforced); got.Admitted == c.refused || c.refused && got.Reason != "AppArmor" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
