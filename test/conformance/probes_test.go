package conformance_test

import (
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kctl/proto/core"
)

// watched is how long a test watches for something that must not happen.
const watched = 6 * time.Second

var probes = []behaviour{
	{"Probing container should *not* be restarted with a /healthz http liveness probe", func(w *world) { w.staysAlive(w.healthz(""), httpProbe()) }},
	{"Probing container should *not* be restarted with a GRPC liveness probe", func(w *world) { w.staysAlive(w.grpcPod(), grpcProbe()) }},
	{"Probing container should *not* be restarted with a exec \"cat /tmp/health\" liveness probe", func(w *world) {
		w.staysAlive(w.healthFile(""), execProbe("cat", "/tmp/health"))
	}},
	{"Probing container should *not* be restarted with a tcp:8080 liveness probe", func(w *world) {
		w.staysAlive(w.healthz(""), corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}})
	}},
	{"Probing container should be restarted with a /healthz http liveness probe", func(w *world) {
		w.isRestarted(w.healthz("sleep 2; rm /www/healthz; "), httpProbe(), 1)
	}},
	{"Probing container should be restarted with a GRPC liveness probe", func(w *world) {
		w.isRestarted(w.grpcPod("2s"), grpcProbe(), 1)
	}},
	{"Probing container should be restarted with a exec \"cat /tmp/health\" liveness probe", func(w *world) {
		w.isRestarted(w.healthFile("sleep 2; rm /tmp/health; "), execProbe("cat", "/tmp/health"), 1)
	}},
	{"Probing container should have monotonically increasing restart count", monotonicRestarts},
	{"Probing container with readiness probe should not be ready before initial delay and never restart", readyAfterDelay},
	{"Probing container with readiness probe that fails should never be ready and never restart", neverReady},
}

func httpProbe() corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}
}

func grpcProbe() corev1.ProbeHandler {
	return corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 5000}}
}

func execProbe(command ...string) corev1.ProbeHandler {
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}}
}

// healthz is a pod that serves /healthz, and then runs the shell text in then.
func (w *world) healthz(then string) *corev1.Pod {
	pod := w.script("probed", "mkdir -p /www; echo ok > /www/healthz; httpd -p 8080 -h /www; "+then+"exec sleep 3600")
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	return pod
}

func (w *world) healthFile(then string) *corev1.Pod {
	pod := w.script("probed", "echo ok > /tmp/health; "+then+"exec sleep 3600")
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	return pod
}

func (w *world) grpcPod(failAfter ...string) *corev1.Pod {
	pod := w.script("probed", "")
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	c := &pod.Spec.Containers[0]
	c.Image, c.Command, c.Args = w.grpc, nil, append([]string{"5000"}, failAfter...)
	return pod
}

func liveness(pod *corev1.Pod, handler corev1.ProbeHandler) {
	pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{
		ProbeHandler: handler, InitialDelaySeconds: 1, PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 5}
}

func restarts(p *corev1.Pod) int32 {
	if len(p.Status.ContainerStatuses) == 0 {
		return 0
	}
	return p.Status.ContainerStatuses[0].RestartCount
}

func (w *world) staysAlive(pod *corev1.Pod, handler corev1.ProbeHandler) {
	w.t.Helper()
	liveness(pod, handler)
	w.ready(pod)
	w.unchanged("probed", watched, neverRestarted)
}

func neverRestarted(p *corev1.Pod) error {
	if n := restarts(p); n != 0 {
		return fmt.Errorf("it was restarted %d times: %+v", n, p.Status.ContainerStatuses)
	}
	return nil
}

func (w *world) isRestarted(pod *corev1.Pod, handler corev1.ProbeHandler, times int32) {
	w.t.Helper()
	liveness(pod, handler)
	w.ready(pod)
	seen := int32(0)
	// One by one: the back-offs before four restarts add up to most of what await allows.
	for least := int32(1); least <= times; least++ {
		w.await("probed", fmt.Sprintf("restarted %d times", least), func(p *corev1.Pod) bool {
			if n := restarts(p); n < seen {
				w.t.Errorf("the restart count went from %d to %d", seen, n)
			} else {
				seen = n
			}
			return seen >= least
		})
	}
}

// monotonicRestarts: restart counts only grow. Restarts wait for back-offs of
// ten seconds, twenty, …
func monotonicRestarts(w *world) {
	times := int32(3)
	if os.Getenv("KCTL_LONG") != "" {
		times = 4
	} else {
		w.t.Log("three restarts only: the fourth waits for a back-off of forty seconds; KCTL_LONG=1 asks for it")
	}
	w.isRestarted(w.healthFile("sleep 1; rm /tmp/health; "), execProbe("cat", "/tmp/health"), times)
}

func readyAfterDelay(w *world) {
	const delay = 4
	pod := w.healthz("")
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: httpProbe(), InitialDelaySeconds: delay, PeriodSeconds: 1}
	ready := w.ready(pod)
	began := ready.Status.ContainerStatuses[0].State.Running.StartedAt
	// API times are whole seconds: truncation may take off up to one.
	if after := condition(ready, corev1.PodReady).LastTransitionTime.Sub(began.Time); after < (delay-1)*time.Second {
		w.t.Errorf("it was ready %s after its start, before the delay of %d s", after, delay)
	}
	if err := neverRestarted(ready); err != nil {
		w.t.Error(err)
	}
}

func neverReady(w *world) {
	pod := w.healthz("")
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: execProbe("false"), InitialDelaySeconds: 1, PeriodSeconds: 1}
	w.start(pod)
	w.unchanged("probed", watched, func(p *corev1.Pod) error {
		if core.PodReady(p) {
			return errors.New("it is ready")
		}
		return neverRestarted(p)
	})
	if _, err := w.pods().Get(w.ctx, "probed", metav1.GetOptions{}); err != nil {
		w.t.Error(err)
	}
}
