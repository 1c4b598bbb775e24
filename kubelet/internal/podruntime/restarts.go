package podruntime

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
	"kctl/proto/relay"
)

// reasonOOM is what runtimes say of a container that the kernel has ended for its memory.
const reasonOOM = "OOMKilled"

// tellRestart passes on what is known of a container's restart. A container's first run is none.
func (s *podSync) tellRestart(r relay.Restart) {
	if s.Restarting != nil && r.Number > 0 {
		s.Restarting(s.pod, r)
	}
}

// following is the restart after a run, as far as the run tells.
func following(run *runtimestate.ContainerStatus, cause relay.Cause) relay.Restart {
	r := relay.Restart{Container: run.Name, Number: run.RestartCount + 1, Cause: cause}
	if run.State != runtimestate.StateExited {
		return r
	}
	r.ExitCode, r.Reason, r.Ended = run.ExitCode, run.Reason, run.FinishedAt
	if run.StartedAt.Unix() > 0 { // it was started at all
		r.Began = run.StartedAt
		if r.Began.After(r.Ended) { // containerd may note the start of a very short run after its end
			r.Began = r.Ended
		}
	}
	return r
}

// causeOf is what has ended a run that the kubelet has not ended: what it has is told when it does.
func causeOf(run *runtimestate.ContainerStatus, sandboxes []*runtimestate.SandboxStatus) relay.Cause {
	there := slices.ContainsFunc(sandboxes, func(s *runtimestate.SandboxStatus) bool { return s.ID == run.SandboxID && s.Ready })
	switch {
	case run.State != runtimestate.StateExited:
		return ""
	case run.Reason == reasonOOM:
		return relay.CauseOOM
	case !there:
		return relay.CauseSandbox
	}
	return relay.CauseExit
}

// runsAgain tells whether a container that has ended is started again because of how it has.
func (s *podSync) runsAgain(ended *runtimestate.ContainerStatus) bool {
	for c := range core.Containers(&s.pod.Spec) {
		if c.Name == ended.Name {
			return s.pod.DeletionTimestamp == nil && core.Restarts(&s.pod.Spec, c, ended.ExitCode)
		}
	}
	return false
}

// tellEnded tells that the kubelet has ended a container that runs again, and until when it is held back
// if it is: by the run before it may have been held back less.
func (s *podSync) tellEnded(kill podactions.Kill, ended *runtimestate.ContainerStatus, starts []podactions.Start) {
	next := slices.IndexFunc(starts, func(c podactions.Start) bool { return c.Name == kill.Name })
	if next < 0 && !s.runsAgain(ended) {
		return
	}
	r := following(ended, kill.Cause)
	if next >= 0 && starts[next].BackOff > 0 {
		spec, _ := s.spec(starts[next])
		r.BackOffFrom, r.BackOffUntil = s.Clock.Now(), ended.FinishedAt.Add(s.crashes.Delay(s.key(spec)))
	}
	s.tellRestart(r)
}

// tellBackOff tells that a container that has ended is held back.
func (s *podSync) tellBackOff(c podactions.Start) {
	last := s.status.Container(c.Name)
	if last == nil || last.State != runtimestate.StateExited {
		return
	}
	r := following(last, causeOf(last, s.status.Sandboxes))
	r.BackOffFrom = s.Clock.Now()
	r.BackOffUntil = r.BackOffFrom.Add(c.BackOff)
	s.tellRestart(r)
}

// tellCreated tells that a container's next run has been created.
func (s *podSync) tellCreated(c *containerStart, imageThere time.Time) {
	r := relay.Restart{Container: c.Name}
	if c.last != nil {
		r = following(c.last, causeOf(c.last, s.current().Sandboxes))
	}
	r.Number, r.ImagePulled, r.Created = c.restarts, imageThere, c.created
	s.tellRestart(r)
}

// tellNewSandbox tells of the containers that run again because their sandbox is made anew. The
// records of init containers are about to be removed.
func (s *podSync) tellNewSandbox(ended *runtimestate.PodStatus) {
	for c := range core.Containers(&s.pod.Spec) {
		last := ended.Container(c.Name)
		if last == nil || last.State != runtimestate.StateExited {
			continue
		}
		policy := core.RestartPolicyOf(&s.pod.Spec, c)
		if s.isInit(c.Name) || policy == corev1.ContainerRestartPolicyAlways || core.Restarts(&s.pod.Spec, c, last.ExitCode) {
			s.tellRestart(following(last, causeOf(last, ended.Sandboxes)))
		}
	}
}

// tellRestartOfAll tells of a container that is forgotten, as the pod starts over.
func (s *podSync) tellRestartOfAll(id runtimestate.ContainerID, because *runtimestate.ContainerStatus) {
	run := s.current().ContainerByID(id)
	if run == nil {
		return
	}
	cause := relay.CauseRestartAll
	if id == because.ID {
		cause = causeOf(run, s.current().Sandboxes)
	}
	s.tellRestart(following(run, cause))
}
