package runtimeconfig

import (
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/environment"
	"kctl/proto/core"
)

// Options are what configurations depend on besides the pod. All functions may be
// called from several goroutines at once.
type Options struct {
	// Environment makes the containers' environments.
	Environment *environment.Sources
	// Reported returns the runtime's last status, which lists its features.
	Reported func() *runtimeapi.StatusResponse

	RootDir    string // where pods/UID/ is made: /var/lib/kubelet
	PodLogsDir string // /var/log/pods

	// CgroupParent returns the cgroup for a pod's sandbox and containers; nil or
	// "" leaves it to the runtime.
	CgroupParent func(pod *core.Pod) string
	// DNS gives a pod's resolver configuration; nil leaves it to the runtime.
	DNS func(pod *core.Pod) (*runtimeapi.DNSConfig, error)
	// UserIDs returns the host's ids for a pod with a user namespace of its own;
	// nil refuses such pods.
	UserIDs func(pod types.UID) (first, count uint32, err error)
	// VolumeGroups are the groups that may use the pod's volumes; nil for none.
	VolumeGroups func(pod types.UID) []int64
	// ClusterDomain completes the FQDN of pods with a subdomain.
	ClusterDomain string
	// SeccompRoot is where Localhost profiles are: RootDir/seccomp.
	SeccompRoot string
	// SeccompDefault gives containers that name no profile the runtime's default one.
	SeccompDefault bool
	// NoCPUQuota does not enforce cpu limits.
	NoCPUQuota bool
	// CPUPeriod is the time, in microseconds, over which they are; zero means cgroup.Period.
	CPUPeriod int64
	// OOMKillGroup makes the kernel kill all of a container's processes instead of one
	// when it is out of memory (cgroup v2).
	OOMKillGroup bool
	// MemoryQoS is what protects and slows down containers (cgroup v2).
	MemoryQoS cgroup.MemoryQoS
	// LimitedSwap lets containers of burstable pods swap (cgroup v2); without it, no
	// container does.
	LimitedSwap bool
}

// Maker makes configurations. It is safe for concurrent use.
type Maker struct {
	Options
	machine
}

// New returns a Maker for this machine.
func New(o Options) (*Maker, error) {
	m, err := thisMachine()
	if err != nil {
		return nil, err
	}
	return &Maker{Options: o, machine: m}, nil
}

// handlerFeatures returns the features that the runtime reports for a handler; "" is the
// default one.
func (m *Maker) handlerFeatures(handler string) *runtimeapi.RuntimeHandlerFeatures {
	for _, h := range m.Reported().GetRuntimeHandlers() {
		if h.GetName() == handler {
			return h.GetFeatures()
		}
	}
	return nil
}

// ReportsUsers reports whether the runtime supports supplementalGroupsPolicy,
// and therefore reports the users that containers run as.
func (m *Maker) ReportsUsers() bool { return m.Reported().GetFeatures().GetSupplementalGroupsPolicy() }
