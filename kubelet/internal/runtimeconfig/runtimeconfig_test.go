package runtimeconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/image"
	"kctl/proto/core"
)

func TestNamespacesAndFilter(t *testing.T) {
	yes := true
	for _, c := range []struct {
		spec core.PodSpec
		want string // network, ipc, pid, filter
	}{
		{core.PodSpec{}, "POD POD CONTAINER Unconfined"},
		{core.PodSpec{HostNetwork: true, HostIPC: true, HostPID: true}, "NODE NODE NODE RuntimeDefault"},
		{core.PodSpec{ShareProcessNamespace: &yes}, "POD POD POD RuntimeDefault"},
		{core.PodSpec{SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}},
			"POD POD CONTAINER RuntimeDefault"},
		{core.PodSpec{SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}},
			"POD POD CONTAINER Unconfined"},
	} {
		pod := &core.Pod{Spec: c.spec}
		n := namespaces(pod)
		if got := fmt.Sprintf("%v %v %v %v", n.Network, n.Ipc, n.Pid, (&Maker{}).sandboxSeccomp(pod).ProfileType); got != c.want {
			t.Errorf("%+v: %s, want %s", c.spec, got, c.want)
		}
		byDefault := &Maker{Options: Options{SeccompDefault: true}}
		if got := byDefault.sandboxSeccomp(pod).ProfileType; got != runtimeapi.SecurityProfile_RuntimeDefault {
			t.Errorf("%+v: %s with seccompDefault", c.spec, got)
		}
	}
}

func TestPortMappings(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &core.Pod{Spec: core.PodSpec{
		InitContainers: []core.Container{
			{Ports: []corev1.ContainerPort{{ContainerPort: 1}}}, // gone before it is called
			{Ports: []corev1.ContainerPort{{ContainerPort: 2, HostPort: 20, Protocol: corev1.ProtocolUDP}}, RestartPolicy: &always},
		},
		Containers: []core.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 3, HostPort: 30, HostIP: "127.0.0.1"}}}},
	}}
	got := portMappings(pod)
	if len(got) != 2 || got[0].ContainerPort != 2 || got[0].Protocol != runtimeapi.Protocol_UDP || got[1].HostIp != "127.0.0.1" || got[1].HostPort != 30 {
		t.Errorf("%v", got)
	}
}

func TestSecurity(t *testing.T) {
	m := &Maker{Options: Options{SeccompRoot: "/profiles"}}
	yes, no := true, false
	zero, user := int64(0), int64(1000)
	profile, outside := "audit.json", "../../etc/passwd"
	unmasked := corev1.UnmaskedProcMount
	root, named := image.Present{UID: &zero}, image.Present{Username: "web"}
	for _, c := range []struct {
		name    string
		sc      corev1.SecurityContext
		present image.Present
		err     string
		check   func(*runtimeapi.LinuxContainerSecurityContext) bool
	}{
		{"image's number", corev1.SecurityContext{}, image.Present{UID: &user}, "", func(s *runtimeapi.LinuxContainerSecurityContext) bool {
			return s.RunAsUser.GetValue() == 1000 && s.RunAsUsername == ""
		}},
		{"image's name", corev1.SecurityContext{}, named, "", func(s *runtimeapi.LinuxContainerSecurityContext) bool {
			return s.RunAsUser == nil && s.RunAsUsername == "web"
		}},
		{"nobody said, with a group", corev1.SecurityContext{RunAsGroup: &user}, image.Present{}, "", func(s *runtimeapi.LinuxContainerSecurityContext) bool {
			return s.RunAsUser != nil && s.RunAsUser.Value == 0 && s.RunAsUsername == "" && s.RunAsGroup.GetValue() == 1000
		}},
		{"own user", corev1.SecurityContext{RunAsUser: &user}, named, "", func(s *runtimeapi.LinuxContainerSecurityContext) bool {
			return s.RunAsUser.GetValue() == 1000 && s.RunAsUsername == ""
		}},
		{"non-root, image's number", corev1.SecurityContext{RunAsNonRoot: &yes}, image.Present{UID: &user}, "", nil},
		{"non-root, root", corev1.SecurityContext{RunAsNonRoot: &yes}, root, "image will run as root", nil},
		{"non-root, nobody said", corev1.SecurityContext{RunAsNonRoot: &yes}, image.Present{}, "image will run as root", nil},
		{"non-root, name", corev1.SecurityContext{RunAsNonRoot: &yes}, named, "non-numeric user (web)", nil},
		{"non-root, asks for root", corev1.SecurityContext{RunAsNonRoot: &yes, RunAsUser: &zero}, named, "breaks non-root policy", nil},
		{"non-root, own user", corev1.SecurityContext{RunAsNonRoot: &yes, RunAsUser: &user}, root, "", nil},
		{"masks", corev1.SecurityContext{}, root, "", func(s *runtimeapi.LinuxContainerSecurityContext) bool {
			return slices.Contains(s.MaskedPaths, "/proc/kcore") && !s.NoNewPrivs
		}},
		{"no masks", corev1.SecurityContext{ProcMount: &unmasked}, root, "", func(s *runtimeapi.LinuxContainerSecurityContext) bool {
			return len(s.MaskedPaths)+len(s.ReadonlyPaths) == 0
		}},
		{"no escalation", corev1.SecurityContext{AllowPrivilegeEscalation: &no}, root, "",
			func(s *runtimeapi.LinuxContainerSecurityContext) bool { return s.NoNewPrivs }},
		{"capabilities", corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}, Drop: []corev1.Capability{"ALL"}}}, root,
			"", func(s *runtimeapi.LinuxContainerSecurityContext) bool {
				return slices.Equal(s.Capabilities.AddCapabilities, []string{"NET_ADMIN"}) && slices.Equal(s.Capabilities.DropCapabilities, []string{"ALL"})
			}},
		{"own filter", corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &profile}}, root, "",
			func(s *runtimeapi.LinuxContainerSecurityContext) bool {
				return s.Seccomp.LocalhostRef == "/profiles/audit.json"
			}},
		{"AppArmor, own", corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &profile}},
			root, "", func(s *runtimeapi.LinuxContainerSecurityContext) bool {
				return s.Apparmor.ProfileType == runtimeapi.SecurityProfile_Localhost && s.Apparmor.LocalhostRef == profile
			}},
		{"AppArmor, none", corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}}, root, "",
			func(s *runtimeapi.LinuxContainerSecurityContext) bool {
				return s.Apparmor.ProfileType == runtimeapi.SecurityProfile_Unconfined
			}},
		{"AppArmor, the runtime's", corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}}, root, "",
			func(s *runtimeapi.LinuxContainerSecurityContext) bool {
				return s.Apparmor.ProfileType == runtimeapi.SecurityProfile_RuntimeDefault
			}},
		{"SELinux", corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{User: "u", Role: "r", Type: "t", Level: "l"}}, root, "",
			func(s *runtimeapi.LinuxContainerSecurityContext) bool {
				o := s.SelinuxOptions
				return o.User == "u" && o.Role == "r" && o.Type == "t" && o.Level == "l"
			}},
		{"filter from elsewhere", corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{
			Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &outside,
		}}, root, "below /profiles", nil},
	} {
		got, err := m.linuxSecurity(&core.Pod{}, &core.Container{Name: "c", SecurityContext: &c.sc}, c.present)
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: err = %v, want %s", c.name, err, c.err)
		case c.err == "" && (err != nil || c.check != nil && !c.check(got)):
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
	m.SeccompDefault = true
	unconfined := &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}
	for sc, want := range map[*corev1.SecurityContext]runtimeapi.SecurityProfile_ProfileType{
		nil: runtimeapi.SecurityProfile_RuntimeDefault, unconfined: runtimeapi.SecurityProfile_Unconfined,
	} {
		got, err := m.linuxSecurity(&core.Pod{}, &core.Container{Name: "c", SecurityContext: sc}, root)
		if err != nil || got.Seccomp.ProfileType != want {
			t.Errorf("confined where nothing is said, %v: %v, %v", sc, got, err)
		}
	}
}

// The counters of each processor are masked, whatever else is beside them.
func TestMaskedPaths(t *testing.T) {
	sys := t.TempDir()
	for _, dir := range []string{"cpu0/thermal_throttle", "cpu12/thermal_throttle", "cpu1/topology", "cpufreq/thermal_throttle"} {
		if err := os.MkdirAll(filepath.Join(sys, "devices/system/cpu", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	masked := masksOf(sys)
	counters := slices.DeleteFunc(slices.Clone(masked), func(path string) bool { return !strings.Contains(path, "thermal") })
	want := []string{"/sys/devices/system/cpu/cpu0/thermal_throttle", "/sys/devices/system/cpu/cpu12/thermal_throttle"}
	if !slices.Equal(counters, want) || !slices.Contains(masked, "/proc/interrupts") {
		t.Errorf("masked are %q, want %q among them", masked, want)
	}
}

// A container may use the huge pages that it requests, and no others.
func TestHugePages(t *testing.T) {
	limits := corev1.ResourceList{"hugepages-2Mi": resource.MustParse("6Mi"), "memory": resource.MustParse("1Gi")}
	for _, got := range (&Maker{}).linuxResources(nil, limits).HugepageLimits {
		if want := map[string]uint64{"2MB": 6 << 20}[got.PageSize]; got.Limit != want {
			t.Errorf("%s: %d, want %d", got.PageSize, got.Limit, want)
		}
	}
	for bytes, want := range map[int64]string{2 << 20: "2MB", 1 << 30: "1GB", 64 << 10: "64KB"} {
		if got := pageSize(bytes); got != want {
			t.Errorf("a page of %d is called %s, want %s", bytes, got, want)
		}
	}
}

// Which of a container's limits a node may leave out or add to.
func TestWhatANodeSaysOfLimits(t *testing.T) {
	c := core.Container{Resources: corev1.ResourceRequirements{Limits: quantities("1", "1Gi")}}
	pod := &core.Pod{Spec: core.PodSpec{Containers: []core.Container{c}}}
	m := &Maker{machine: machine{memory: 8 << 30}}
	if r := m.Resources(pod, &c); r.CpuQuota != 100_000 || r.Unified != nil {
		t.Errorf("%v", r)
	}
	pod.Spec.Resources = &corev1.ResourceRequirements{Limits: quantities("2", "2Gi"), Requests: quantities("1", "1Gi")}
	if r := m.Resources(pod, &core.Container{}); r.CpuQuota != 200_000 || r.CpuShares != 2048 || r.MemoryLimitInBytes != 2<<30 {
		t.Errorf("with the pod's limits: %v", r)
	}
	pod.Spec.Resources = nil
	m.CPUPeriod = 10_000
	if r := m.Resources(pod, &c); r.CpuQuota != 10_000 || r.CpuPeriod != 10_000 {
		t.Errorf("over 10 ms: %v", r)
	}
	m.NoCPUQuota, m.OOMKillGroup = true, true
	if r := m.Resources(pod, &c); r.CpuQuota != 0 || r.CpuShares != 1024 || r.MemoryLimitInBytes != 1<<30 || r.Unified["memory.oom.group"] != "1" {
		t.Errorf("%v", r)
	}
}

// The API and the runtime have names of their own for the same signals.
func TestStopSignals(t *testing.T) {
	for signal, want := range map[corev1.Signal]runtimeapi.Signal{
		corev1.SIGTERM: runtimeapi.Signal_SIGNAL_SIGTERM, corev1.SIGUSR1: runtimeapi.Signal_SIGNAL_SIGUSR1,
		corev1.SIGRTMIN: runtimeapi.Signal_SIGNAL_SIGRTMIN, corev1.SIGRTMINPLUS15: runtimeapi.Signal_SIGNAL_SIGRTMINPLUS15,
		corev1.SIGRTMAXMINUS1: runtimeapi.Signal_SIGNAL_SIGRTMAXMINUS1,
	} {
		if got, err := stopSignal(&core.Container{Lifecycle: &corev1.Lifecycle{StopSignal: &signal}}); got != want || err != nil {
			t.Errorf("%s: %s, %v", signal, got, err)
		}
	}
	if got, err := stopSignal(&core.Container{Lifecycle: &corev1.Lifecycle{StopSignal: new(corev1.Signal("SIGNONE"))}}); err == nil {
		t.Errorf("no such signal: %s", got)
	}
	if got, err := stopSignal(&core.Container{}); got != runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT || err != nil {
		t.Errorf("without one: %s, %v", got, err)
	}
}

func TestOOMScore(t *testing.T) {
	m := &Maker{machine: machine{memory: 8 << 30}}
	critical := int32(core.SystemCriticalPriority)
	list := func(memory string) corev1.ResourceList { return quantities("1", memory) }
	for name, c := range map[string]struct {
		requests, limits corev1.ResourceList
		class            string
		want             int64
	}{
		"best effort":      {nil, nil, "", 1000},
		"guaranteed":       {list("1Gi"), list("1Gi"), "", -997},
		"burstable, none":  {quantities("1", "0"), nil, "", 999},
		"burstable, half":  {list("4Gi"), nil, "", 500},
		"burstable, all":   {list("8Gi"), nil, "", 3},
		"node-critical":    {nil, nil, "system-node-critical", -997},
		"cluster-critical": {list("4Gi"), nil, "system-cluster-critical", 500},
		"burstable, small": {list("1Mi"), nil, "", 999},
	} {
		pod := podOf(core.Container{Name: "a"})
		if pod.Spec.PriorityClassName = c.class; c.class != "" {
			pod.Spec.Priority = &critical
		}
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: c.requests, Limits: c.limits}
		if got := m.oomScore(pod, &pod.Spec.Containers[0]); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Sidecars share the fate of the containers that they serve, and pod-level
// requests count for each container.
func TestOOMScoreOfContainersTogether(t *testing.T) {
	m := &Maker{machine: machine{memory: 8 << 30}}
	always := corev1.ContainerRestartPolicyAlways
	pod := podOf(core.Container{Name: "a"}, core.Container{Name: "b"})
	pod.Spec.InitContainers = []core.Container{{Name: "s", RestartPolicy: &always}}
	for i, memory := range []string{"2Gi", "1Gi"} {
		pod.Spec.Containers[i].Resources.Requests = quantities("1", memory)
	}
	check := func(sidecar, a, b int64) {
		t.Helper()
		got := []int64{m.oomScore(pod, &pod.Spec.InitContainers[0]), m.oomScore(pod, &pod.Spec.Containers[0]), m.oomScore(pod, &pod.Spec.Containers[1])}
		if !slices.Equal(got, []int64{sidecar, a, b}) {
			t.Errorf("%v, want %v", got, []int64{sidecar, a, b})
		}
	}
	check(875, 750, 875)
	pod.Spec.Resources = &corev1.ResourceRequirements{Requests: quantities("4", "6Gi")} // 1 GiB more for each
	check(750, 625, 750)
	pod.Spec.InitContainers[0].Resources.Requests = quantities("1", "3Gi")
	check(625, 750, 875)
}

func TestContainersHaveThePodsLimits(t *testing.T) {
	m := &Maker{machine: machine{memory: 8 << 30}}
	pod := podOf(core.Container{Name: "a"}, core.Container{Name: "b"})
	pod.Spec.Resources = &corev1.ResourceRequirements{Limits: quantities("2", "1Gi")}
	pod.Spec.Containers[1].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}
	a, b := m.Resources(pod, &pod.Spec.Containers[0]), m.Resources(pod, &pod.Spec.Containers[1])
	if a.CpuQuota != 200000 || a.MemoryLimitInBytes != 1<<30 || b.CpuQuota != 200000 || b.MemoryLimitInBytes != 1<<20 {
		t.Errorf("%+v, %+v", a, b)
	}
	if len(pod.Spec.Containers[1].Resources.Limits) != 1 {
		t.Error("the pod was changed")
	}
}

// podOf is a pod of these containers.
func podOf(containers ...core.Container) *core.Pod {
	return &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: core.PodSpec{Containers: containers}}
}

func quantities(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}
