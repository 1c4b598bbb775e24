package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/podfiles"
	"kctl/proto/core"
)

// slowDisk is how long the kubelet's disk may keep a pod before its owner is told.
const slowDisk = 30 * time.Second

// onDisk does the first thing that is written for a pod. A call of the file system can't be
// given up: while the disk hangs, it does not return, and nothing but this event tells what the
// pod waits for. The node stays ready, as upstream's does, since what runs goes on.
func (l *Lifecycle) onDisk(pod *core.Pod, write func() error) error {
	timer, done := l.Clock.NewTimer(slowDisk), make(chan struct{})
	defer timer.Stop()
	defer close(done)
	go func() {
		select {
		case <-done:
		case <-timer.C():
			l.Events.Eventf(pod, corev1.EventTypeWarning, "FailedMount",
				"the directory of the pod, %s, could not be made within %s: does its disk hang?", podfiles.PodDir(l.RootDir, pod.UID), slowDisk)
		}
	}()
	return write()
}
