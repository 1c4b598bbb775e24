package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"sync"
	"time"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"kctl/proto/core"
)

// Names below the root, as upstream has them. Guaranteed pods are directly in
// kubepods.
const (
	podsGroup       = "kubepods"
	burstableGroup  = "burstable"
	bestEffortGroup = "besteffort"
	podPrefix       = "pod"
)

// Options say where and how groups are kept.
type Options struct {
	// Root is the group that kubepods is made in; "" means "/". It is made if
	// it is not there. With the driver systemd it may be a slice's path, too.
	Root string
	// Driver is Cgroupfs (or empty, which means the same) or Systemd: that of
	// the container runtime.
	Driver string
	// PerQOS makes groups for classes and pods; without it, all pods are put
	// into Root and the Manager does nothing.
	PerQOS bool
	// Allocatable bounds all pods together, by the cpu and memory in it: see BoundPods.
	Allocatable corev1.ResourceList
	// PodsUnlimited ignores that bound, and the one of Processes.
	PodsUnlimited bool
	// NoCPUQuota does not enforce cpu limits.
	NoCPUQuota bool
	// CPUPeriod is the time, in microseconds, over which they are; zero means Period.
	CPUPeriod int64
	// Processes bounds the processes of all pods together; zero for no bound.
	Processes int64
	// MemoryQoS is what groups have beside limits of memory, with cgroup v2.
	MemoryQoS MemoryQoS
	// ProtectDaemons is for BoundDaemons.
	ProtectDaemons bool
	// PodPidsLimit bounds the processes of one pod; zero or less for no bound.
	PodPidsLimit int64
	// Observe is called with the duration of each creation, update or removal of a
	// pod's group. May be nil.
	Observe func(operation string, took time.Duration)
}

// Manager makes and destroys groups. It is safe for concurrent use, but only by
// one caller at a time for each pod.
type Manager struct {
	Options
	naming     naming
	mounts     map[string]string // see findMounts
	burstable  burstable
	protected  protected
	incomplete incompleteGroups
	applied    sync.Map // by the UIDs of pods, the amounts that their groups have got
}

// amounts are what a pod's group is made from.
type amounts struct {
	group            string
	cpuRequest       int64 // thousandths of a core, as cpuLimit
	cpuLimit, memory int64 // zero for none
	memoryRequest    int64
	memoryHigh       string // if it is set
}

// incompleteGroups are pods whose groups may exist in some hierarchies only, because making
// or removing them failed. The map is made when all hierarchies have been looked
// into once.
type incompleteGroups struct {
	sync.Mutex
	pods map[types.UID]corev1.PodQOSClass
}

func (p *incompleteGroups) note(uid types.UID, class corev1.PodQOSClass, err error) {
	p.Lock()
	defer p.Unlock()
	if err == nil {
		delete(p.pods, uid)
	} else if p.pods != nil {
		p.pods[uid] = class
	}
}

// New makes the groups above the pods. BoundPods gives them their bounds.
func New(o Options) (*Manager, error) {
	names, err := newNaming(o.Driver, o.Root)
	if err != nil {
		return nil, err
	}
	m := &Manager{Options: o, naming: names}
	if !o.PerQOS {
		return m, nil
	}
	if m.mounts, err = findMounts(names); err != nil {
		return nil, fmt.Errorf("cgroups can't be managed on this machine: %w", err)
	}
	least := &cgroups.Resources{}
	setShares(least, minShares)
	for _, group := range []struct {
		name      string
		resources *cgroups.Resources
	}{
		{podsGroup, &cgroups.Resources{}},
		{path.Join(podsGroup, burstableGroup), &cgroups.Resources{}},
		{path.Join(podsGroup, bestEffortGroup), least},
	} {
		if err := m.create(group.name, group.resources); err != nil {
			return nil, fmt.Errorf("cgroups can't be managed on this machine: %w "+
				"(with --cgroups-per-qos=false they are left to the container runtime)", err)
		}
	}
	if err := m.startProtecting(); err != nil {
		return nil, err
	}
	return m, nil
}

// Parent is the group for a pod's sandbox and containers, in the form for the
// container runtime.
func (m *Manager) Parent(pod *core.Pod) string {
	if m.PerQOS {
		return m.naming.name(podGroup(pod))
	}
	if root := m.naming.name(""); root != "/" {
		return root
	}
	return ""
}

func podGroup(pod *core.Pod) string { return groupOf(pod.UID, QOSClass(pod)) }

// groupOf is podGroup for a pod of which no more is known.
func groupOf(uid types.UID, class corev1.PodQOSClass) string {
	name := podPrefix + string(uid)
	switch class {
	case corev1.PodQOSBestEffort:
		return path.Join(podsGroup, bestEffortGroup, name)
	case corev1.PodQOSBurstable:
		return path.Join(podsGroup, burstableGroup, name)
	}
	return path.Join(podsGroup, name)
}

// Create makes a pod's group with its share and limits, or updates these. It writes nothing
// where the group has got them before.
func (m *Manager) Create(pod *core.Pod) error {
	milliCPU, memory := podLimits(pod)
	return m.set("create", pod, milliCPU, memory)
}

// RaiseLimits makes the pod's group large enough for the pod both as it was and as it
// is to be, so that its containers can be changed one by one; new limits are
// left to Create.
func (m *Manager) RaiseLimits(pod, before *core.Pod) error {
	milliCPU, memory := podLimits(pod)
	cpuBefore, memoryBefore := podLimits(before)
	widest := func(a, b int64) int64 {
		if a == 0 || b == 0 {
			return 0 // not limited now, or not any more
		}
		return max(a, b)
	}
	return m.set("update", pod, widest(milliCPU, cpuBefore), widest(memory, memoryBefore))
}

// observe starts measuring an operation; the returned function ends that.
func (m *Manager) observe(operation string) (over func()) {
	if m.Observe == nil || !m.PerQOS {
		return func() {}
	}
	began := time.Now()
	return func() { m.Observe(operation, time.Since(began)) }
}

// set leaves limits that are zero as they are.
func (m *Manager) set(operation string, pod *core.Pod, milliCPU, memory int64) error {
	if !m.PerQOS {
		return nil
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	var unified map[string]string
	if cgroups.IsCgroup2UnifiedMode() {
		unified = m.MemoryQoS.pod(pod, requests.Memory().Value())
	}
	wanted := amounts{podGroup(pod), requests.Cpu().MilliValue(), milliCPU, memory, requests.Memory().Value(), unified[memoryHigh]}
	if has, ok := m.applied.Load(pod.UID); ok && has == wanted && m.isThere(wanted.group) {
		return nil
	}
	m.applied.Delete(pod.UID) // what it has is unknown until all of it is done
	defer m.observe(operation)()
	r := &cgroups.Resources{Memory: memory, Unified: unified}
	setShares(r, Shares(wanted.cpuRequest))
	period := cmp.Or(m.CPUPeriod, Period)
	if quota := Quota(milliCPU, period); quota > 0 && !m.NoCPUQuota {
		r.CpuQuota, r.CpuPeriod = quota, uint64(period)
	}
	if m.PodPidsLimit > 0 {
		r.PidsLimit = &m.PodPidsLimit
	}
	err := m.naming.holds(pod.UID)
	if err == nil {
		err = m.create(wanted.group, r)
		m.incomplete.note(pod.UID, QOSClass(pod), err)
	}
	if err == nil {
		err = m.shareBurstable(pod.UID, QOSClass(pod), wanted.cpuRequest, false)
	}
	if err == nil {
		err = m.protect(pod.UID, QOSClass(pod), wanted.memoryRequest)
	}
	if err != nil {
		return fmt.Errorf("control group of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	m.applied.Store(pod.UID, wanted)
	return nil
}

// isThere tells whether a group is where limits are kept. systemd and administrators may remove that of
// a pod of which nothing runs.
func (m *Manager) isThere(group string) bool {
	g, err := m.group(group, nil)
	if err != nil {
		return false
	}
	for _, controller := range []string{"cpu", "memory", "pids"} {
		if dir := g.Path(controller); dir != "" && !cgroups.PathExists(dir) {
			return false
		}
	}
	return true
}

// Processes counts the processes in a pod's group; for a pod without one, the
// count is unknown.
func (m *Manager) Processes(pod *core.Pod) int {
	if !m.PerQOS {
		return 0
	}
	dirs, err := m.dirs(podGroup(pod))
	if err != nil {
		return 0
	}
	most := 0
	for _, dir := range dirs { // not all hierarchies need have them
		pids, _ := cgroups.GetAllPids(dir)
		most = max(most, len(pids))
	}
	return most
}

// Destroy kills what still runs in a pod's group, and removes it. It is no
// error if there is none.
func (m *Manager) Destroy(uid types.UID, class corev1.PodQOSClass) (err error) {
	if !m.PerQOS {
		return nil
	}
	m.applied.Delete(uid)
	defer func() { m.incomplete.note(uid, class, err) }()
	defer m.observe("destroy")()
	g, err := m.group(groupOf(uid, class), nil)
	if err != nil {
		return fmt.Errorf("control group of pod %s: %w", uid, err)
	}
	if err := kill(g); err != nil {
		return fmt.Errorf("control group of pod %s: %w", uid, err)
	}
	if err := m.remove(g); err != nil {
		return fmt.Errorf("removing control group of pod %s: %w", uid, err)
	}
	if err := m.shareBurstable(uid, class, 0, true); err != nil {
		return fmt.Errorf("share of the burstable pods: %w", err)
	}
	return m.protect(uid, class, 0)
}

// remove removes an empty group, and with systemd the slice.
func (m *Manager) remove(g cgroups.Manager) error {
	if m.naming.systemd {
		return g.Destroy()
	}
	var failed []error
	for _, dir := range g.GetPaths() {
		if dir == "" {
			continue
		}
		if err := cgroups.RemovePath(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (m *Manager) create(name string, r *cgroups.Resources) error {
	r.SkipDevices = true // the groups above containers allow what containers ask for
	g, err := m.group(name, r)
	if err != nil {
		return err
	}
	if err := g.Apply(-1); err != nil {
		return fmt.Errorf("making %s: %w", m.naming.name(name), err)
	}
	if err := g.Set(r); err != nil {
		return fmt.Errorf("setting the limits of %s: %w", m.naming.name(name), err)
	}
	return nil
}

func setShares(r *cgroups.Resources, shares uint64) {
	r.CpuShares = shares
	if cgroups.IsCgroup2UnifiedMode() {
		r.CpuWeight = cgroups.ConvertCPUSharesToCgroupV2Value(shares)
	}
}
