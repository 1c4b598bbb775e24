package runtimestate

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/proto/core"
)

// queryParallelism bounds the parallel status calls for one pod.
const queryParallelism = 8

// Reader asks the runtime. It is safe for concurrent use.
type Reader struct {
	runtime *cri.Client
	name    string // of the runtime
	clock   clock.PassiveClock
}

// NewReader returns a Reader of the runtime, which it asks for its name.
func NewReader(ctx context.Context, runtime *cri.Client, clock clock.PassiveClock) (*Reader, error) {
	version, err := runtime.Version(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the container runtime for its version: %w", err)
	}
	if v := version.GetRuntimeApiVersion(); v != "v1" {
		return nil, fmt.Errorf("container runtime %s speaks CRI %s; only v1 is supported", version.GetRuntimeName(), v)
	}
	return &Reader{runtime: runtime, name: version.GetRuntimeName(), clock: clock}, nil
}

// Name is the runtime's own name, the first part of its container ids.
func (r *Reader) Name() string { return r.name }

// ContainerID is how the API names the runtime's container.
func (r *Reader) ContainerID(id string) ContainerID { return ContainerID{Type: r.name, ID: id} }

// Pods lists every pod that the runtime has anything of, dead or alive, with
// two calls, however many there are. Sandboxes and containers that no kubelet
// made are left out.
func (r *Reader) Pods(ctx context.Context) ([]*RunningPod, error) { return r.pods(ctx, nil) }

// Pod is what the runtime has of one pod; nil if it has nothing.
func (r *Reader) Pod(ctx context.Context, uid types.UID) (*RunningPod, error) {
	pods, err := r.pods(ctx, ofPod(uid))
	if err != nil || len(pods) == 0 {
		return nil, err
	}
	return pods[0], nil
}

// ofPod are the labels of everything that belongs to a pod.
func ofPod(uid types.UID) map[string]string {
	return map[string]string{kubelettypes.KubernetesPodUIDLabel: string(uid)}
}

// pods lists the pods whose sandboxes and containers have all the labels.
func (r *Reader) pods(ctx context.Context, labels map[string]string) ([]*RunningPod, error) {
	sandboxes, containers, err := r.list(ctx, labels)
	if err != nil {
		return nil, err
	}
	pods, sources := podsByUID{}, map[string]string{}
	for _, s := range sandboxes {
		p := pods.of(s.GetLabels())
		p.Sandboxes = append(p.Sandboxes, r.runningSandbox(s))
		sources[s.GetId()] = s.GetAnnotations()[core.ConfigSourceAnnotation]
	}
	for _, c := range containers {
		p := pods.of(c.GetLabels())
		p.Containers = append(p.Containers, r.runningContainer(c))
	}
	all := make([]*RunningPod, 0, len(pods))
	for _, p := range pods {
		newestFirst(p.Sandboxes, (*RunningContainer).creation)
		newestFirst(p.Containers, (*RunningContainer).creation)
		if len(p.Sandboxes) > 0 {
			p.Source = sources[p.Sandboxes[0].ID.ID]
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *RunningPod) int { return cmp.Compare(a.UID, b.UID) })
	return all, nil
}

type podsByUID map[types.UID]*RunningPod

// of returns the pod that something with these labels belongs to.
func (pods podsByUID) of(labels map[string]string) *RunningPod {
	uid := types.UID(labels[kubelettypes.KubernetesPodUIDLabel])
	p := pods[uid]
	if p == nil {
		p = &RunningPod{UID: uid, Name: labels[kubelettypes.KubernetesPodNameLabel], Namespace: labels[kubelettypes.KubernetesPodNamespaceLabel]}
		pods[uid] = p
	}
	return p
}

func (r *Reader) runningSandbox(s *runtimeapi.PodSandbox) *RunningContainer {
	state := StateExited
	if s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY {
		state = StateRunning
	}
	return &RunningContainer{
		ID:        r.ContainerID(s.GetId()),
		State:     state,
		CreatedAt: unixNano(s.GetCreatedAt()),
		Attempt:   int32(s.GetMetadata().GetAttempt()),
	}
}

func (r *Reader) runningContainer(c *runtimeapi.Container) *RunningContainer {
	return &RunningContainer{
		ID:        r.ContainerID(c.GetId()),
		Name:      c.GetLabels()[kubelettypes.KubernetesContainerNameLabel],
		SandboxID: c.GetPodSandboxId(),
		State:     containerState(c.GetState()),
		CreatedAt: unixNano(c.GetCreatedAt()),
		Attempt:   parseRestartCount(c.GetAnnotations()[annotationRestartCount], c.GetMetadata().GetAttempt()),
	}
}

// PodStatus asks the runtime for everything about one pod. A pod that it does
// not know has an empty status. Name and namespace are copied into it; if
// empty, they come from the runtime.
func (r *Reader) PodStatus(ctx context.Context, uid types.UID, name, namespace string) (*PodStatus, error) {
	status := &PodStatus{UID: uid, Name: name, Namespace: namespace, At: r.clock.Now()}
	sandboxes, containers, err := r.list(ctx, ofPod(uid))
	if err != nil {
		return nil, fmt.Errorf("status of pod %s/%s: %w", namespace, name, err)
	}
	if name == "" && len(sandboxes) > 0 {
		name, namespace = sandboxes[0].GetMetadata().GetName(), sandboxes[0].GetMetadata().GetNamespace()
		status.Name, status.Namespace = name, namespace
	}
	boxes := make([]*SandboxStatus, len(sandboxes))
	statuses := make([]*ContainerStatus, len(containers))
	var g errgroup.Group
	g.SetLimit(queryParallelism)
	for i, s := range sandboxes {
		g.Go(func() (err error) { boxes[i], err = r.Sandbox(ctx, s.GetId()); return })
	}
	for i, c := range containers {
		g.Go(func() (err error) { statuses[i], err = r.Container(ctx, c.GetId(), c.GetPodSandboxId()); return })
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("status of pod %s/%s: %w", namespace, name, err)
	}
	// What was removed since it was listed is nil.
	status.Sandboxes = slices.DeleteFunc(boxes, func(s *SandboxStatus) bool { return s == nil })
	status.Containers = slices.DeleteFunc(statuses, func(s *ContainerStatus) bool { return s == nil })
	status.Sort()
	return status, nil
}

// Sort puts sandboxes and containers newest first, and takes the pod's IPs
// from the newest sandbox.
func (s *PodStatus) Sort() {
	newestFirst(s.Sandboxes, (*SandboxStatus).creation)
	newestFirst(s.Containers, (*ContainerStatus).creation)
	s.IPs = nil
	if box := s.ReadySandbox(); box != nil {
		s.IPs = box.IPs
	}
}

// list asks for the sandboxes and containers that have all the labels, in
// parallel; nil asks for all.
func (r *Reader) list(ctx context.Context,
	labels map[string]string) (sandboxes []*runtimeapi.PodSandbox, containers []*runtimeapi.Container, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		sandboxes, err = r.runtime.ListPodSandbox(ctx, &runtimeapi.PodSandboxFilter{LabelSelector: labels})
		return err
	})
	g.Go(func() (err error) {
		containers, err = r.runtime.ListContainers(ctx, &runtimeapi.ContainerFilter{LabelSelector: labels})
		return err
	})
	err = g.Wait() // before the results are read
	sandboxes = slices.DeleteFunc(sandboxes, func(s *runtimeapi.PodSandbox) bool { return !sandboxOfKubelet(s.GetLabels()) })
	containers = slices.DeleteFunc(containers, func(c *runtimeapi.Container) bool { return !containerOfKubelet(c.GetLabels()) })
	return sandboxes, containers, err
}

// Sandbox asks for one sandbox; it is nil if the sandbox is gone.
func (r *Reader) Sandbox(ctx context.Context, id string) (*SandboxStatus, error) {
	s, err := r.runtime.PodSandboxStatus(ctx, id)
	if cri.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	status := &SandboxStatus{
		ID:          s.GetId(),
		Attempt:     s.GetMetadata().GetAttempt(),
		Ready:       s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY,
		HostNetwork: s.GetLinux().GetNamespaces().GetOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE,
		CreatedAt:   unixNano(s.GetCreatedAt()),
	}
	if !status.HostNetwork {
		status.IPs = sandboxIPs(s.GetNetwork())
	}
	return status, nil
}

// sandboxIPs are the first address of each family, as the API wants them written. It has room for
// no others, and would refuse the whole status of a pod for one that is no address.
func sandboxIPs(network *runtimeapi.PodSandboxNetworkStatus) (ips []string) {
	told := []string{network.GetIp()}
	for _, more := range network.GetAdditionalIps() {
		told = append(told, more.GetIp())
	}
	known := map[bool]bool{}
	for _, ip := range told {
		address, err := netip.ParseAddr(ip)
		address = address.Unmap()
		if err != nil || address.Zone() != "" || known[address.Is4()] {
			continue
		}
		known[address.Is4()] = true
		ips = append(ips, address.String())
	}
	return ips
}

// Container asks for one container; it is nil if the container is gone.
func (r *Reader) Container(ctx context.Context, id, sandboxID string) (*ContainerStatus, error) {
	c, err := r.runtime.ContainerStatus(ctx, id)
	if cri.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r.convertContainer(ctx, c, sandboxID), nil
}

func (r *Reader) convertContainer(ctx context.Context, c *runtimeapi.ContainerStatus, sandboxID string) *ContainerStatus {
	annotations := c.GetAnnotations()
	status := &ContainerStatus{
		ID:           r.ContainerID(c.GetId()),
		SandboxID:    sandboxID,
		Name:         c.GetLabels()[kubelettypes.KubernetesContainerNameLabel],
		State:        containerState(c.GetState()),
		CreatedAt:    unixNano(c.GetCreatedAt()),
		Image:        cri.Shorten(c.GetImage().GetImage()),
		ImageID:      cri.Shorten(c.GetImageRef()),
		RestartCount: parseRestartCount(annotations[annotationRestartCount], c.GetMetadata().GetAttempt()),
		Hash:         parseHash(annotations[annotationHash]),
		User:         containerUser(c.GetUser().GetLinux()),

		RecursiveReadOnly: RecursivePaths(c.GetMounts()),
	}
	if status.State != StateCreated {
		status.StartedAt = unixNano(c.GetStartedAt())
	}
	if status.State == StateExited || status.State == StateUnknown {
		status.FinishedAt = unixNano(c.GetFinishedAt())
		status.ExitCode = c.GetExitCode()
		status.Reason = cri.Shorten(c.GetReason())
		status.Message = withTerminationMessage(ctx, c)
	}
	return status
}

func containerUser(user *runtimeapi.LinuxContainerUser) *corev1.LinuxContainerUser {
	if user == nil {
		return nil
	}
	return &corev1.LinuxContainerUser{UID: user.GetUid(), GID: user.GetGid(), SupplementalGroups: user.GetSupplementalGroups()}
}

// RecursivePaths are the paths of mounts that are read-only with all that is
// mounted below them.
func RecursivePaths(mounts []*runtimeapi.Mount) []string {
	var paths []string
	for _, m := range mounts {
		if m.GetRecursiveReadOnly() {
			paths = append(paths, m.GetContainerPath())
		}
	}
	return paths
}

func containerState(s runtimeapi.ContainerState) ContainerState {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return StateCreated
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return StateRunning
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return StateExited
	}
	return StateUnknown
}

// unixNano leaves "never", which the runtime writes as 0, the zero time.
func unixNano(ns int64) time.Time {
	if ns <= 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}
