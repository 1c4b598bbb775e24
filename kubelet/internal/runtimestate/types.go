package runtimestate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ContainerID names a container or a sandbox of a runtime; in the API it is
// written "containerd://0123…". It is comparable.
type ContainerID struct {
	Type string // the runtime's name: containerd, cri-o
	ID   string
}

func (c ContainerID) String() string { return c.Type + "://" + c.ID }

// IsEmpty tells whether there is no container.
func (c ContainerID) IsEmpty() bool { return c.ID == "" }

// ParseContainerID reads what String writes.
func ParseContainerID(s string) (ContainerID, error) {
	kind, id, ok := strings.Cut(s, "://")
	if !ok || kind == "" || id == "" {
		return ContainerID{}, fmt.Errorf("container id %q is not of the form runtime://id", s)
	}
	return ContainerID{Type: kind, ID: id}, nil
}

// ContainerState is a container's state in the runtime.
type ContainerState string

const (
	StateCreated ContainerState = "created"
	StateRunning ContainerState = "running"
	StateExited  ContainerState = "exited"
	StateUnknown ContainerState = "unknown"
)

// ContainerStatus is one container, dead or alive, of a pod in the runtime.
// Once published in a PodStatus it must not be changed.
type ContainerStatus struct {
	ID           ContainerID
	SandboxID    string
	Name         string
	State        ContainerState
	CreatedAt    time.Time
	StartedAt    time.Time
	FinishedAt   time.Time
	ExitCode     int32
	Reason       string // OOMKilled, Error, Completed, …
	Message      string // the termination message, once the container exited
	Image        string // as the runtime names it
	ImageID      string // digest reference, or the image's id
	RestartCount int32
	Hash         uint64 // of the spec that it was created from
	// Again says that the kubelet ended it and is about to start it again, whatever its exit code.
	Again bool
	// User is the user of the container's first process; nil if the runtime does
	// not report it.
	User *corev1.LinuxContainerUser
	// RecursiveReadOnly are the paths in the container that are read-only
	// including everything mounted below them.
	RecursiveReadOnly []string
}

// Succeeded tells whether the container ended with exit code zero.
func (c *ContainerStatus) Succeeded() bool {
	return c != nil && c.State == StateExited && c.ExitCode == 0
}

// Ran is how long an ended container ran; zero for one that never started.
func (c *ContainerStatus) Ran() time.Duration {
	if c == nil || c.State != StateExited || c.StartedAt.Unix() <= 0 {
		return 0
	}
	return c.FinishedAt.Sub(c.StartedAt)
}

// SandboxStatus is one sandbox of a pod in the runtime.
type SandboxStatus struct {
	ID          string
	Attempt     uint32
	Ready       bool
	HostNetwork bool
	CreatedAt   time.Time
	IPs         []string // none for pods in the host's network
}

// PodStatus is everything that the runtime has of one pod. Once published it
// must not be changed; Clone first.
type PodStatus struct {
	UID       types.UID
	Name      string
	Namespace string
	// IPs are those of the newest sandbox, if it is ready; none for pods in the
	// host's network.
	IPs []string
	// Sandboxes are sorted by creation, newest first.
	Sandboxes []*SandboxStatus
	// Containers are sorted by creation, newest first.
	Containers []*ContainerStatus
	// At is when the runtime was asked, or when the kubelet's own call returned
	// whose result the status includes.
	At time.Time
}

// Container is the newest container called name, or nil.
func (s *PodStatus) Container(name string) *ContainerStatus {
	if s == nil {
		return nil
	}
	for _, c := range s.Containers {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// ContainerByID is the container with that id, or nil.
func (s *PodStatus) ContainerByID(id ContainerID) *ContainerStatus {
	for _, c := range s.Containers {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// Running are the containers that run now.
func (s *PodStatus) Running() []*ContainerStatus {
	var running []*ContainerStatus
	for _, c := range s.Containers {
		if c.State == StateRunning {
			running = append(running, c)
		}
	}
	return running
}

// ReadySandbox is the newest sandbox if it is ready, or nil.
func (s *PodStatus) ReadySandbox() *SandboxStatus {
	if s == nil || len(s.Sandboxes) == 0 || !s.Sandboxes[0].Ready {
		return nil
	}
	return s.Sandboxes[0]
}

// Clone is a copy whose slices may be changed; the statuses in them are shared.
func (s *PodStatus) Clone() *PodStatus {
	c := *s
	c.IPs = slices.Clone(s.IPs)
	c.Sandboxes = slices.Clone(s.Sandboxes)
	c.Containers = slices.Clone(s.Containers)
	return &c
}

// RunningPod is a short view of everything that the runtime has of a pod, from
// two list calls over the whole runtime, dead containers included.
type RunningPod struct {
	UID        types.UID
	Name       string
	Namespace  string
	Source     string // that its newest sandbox was made for (core.FileSource, …); empty where it does not say
	Sandboxes  []*RunningContainer
	Containers []*RunningContainer
}

// Runs reports whether a container of the pod may run.
func (p *RunningPod) Runs() bool { return slices.ContainsFunc(p.Containers, lasts) }

// Lasts reports whether a container or a sandbox of the pod may run.
func (p *RunningPod) Lasts() bool { return p.Runs() || slices.ContainsFunc(p.Sandboxes, lasts) }

func lasts(c *RunningContainer) bool { return c.State != StateExited }

// RunningContainer is the short view of a container or a sandbox.
type RunningContainer struct {
	ID        ContainerID
	Name      string // of the container; empty for a sandbox
	SandboxID string // of a container
	State     ContainerState
	CreatedAt time.Time
	// Attempt is how many containers of that name, or sandboxes, there were before.
	Attempt int32
}

// RunningPod is the pod as KillPod takes it.
func (s *PodStatus) RunningPod(runtimeName string) *RunningPod {
	p := &RunningPod{UID: s.UID, Name: s.Name, Namespace: s.Namespace}
	for _, b := range s.Sandboxes {
		state := StateExited
		if b.Ready {
			state = StateRunning
		}
		p.Sandboxes = append(p.Sandboxes, &RunningContainer{
			ID: ContainerID{Type: runtimeName, ID: b.ID}, State: state, CreatedAt: b.CreatedAt, Attempt: int32(b.Attempt),
		})
	}
	for _, c := range s.Containers {
		p.Containers = append(p.Containers, &RunningContainer{
			ID:        c.ID,
			Name:      c.Name,
			SandboxID: c.SandboxID,
			State:     c.State,
			CreatedAt: c.CreatedAt,
			Attempt:   c.RestartCount,
		})
	}
	return p
}
