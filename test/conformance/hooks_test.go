package conformance_test

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var hooks = []behaviour{
	{"Container Lifecycle Hook when create a pod with lifecycle hook should execute poststart exec hook properly", postStartExec},
	{"Container Lifecycle Hook when create a pod with lifecycle hook should execute poststart http hook properly", postStartHTTP},
	{"Container Lifecycle Hook when create a pod with lifecycle hook should execute prestop exec hook properly", preStopExec},
	{"Container Lifecycle Hook when create a pod with lifecycle hook should execute prestop http hook properly", preStopHTTP},
	{"PreStop should call prestop when killing a pod", preStopWithinGrace},
}

// told starts a server that logs the requests that hooks send it.
func (w *world) told() (ip string) {
	w.t.Helper()
	return w.ready(w.demo("told")).Status.PodIP
}

func execHook(ip, path string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"wget", "-q", "-O", "-", "http://" + ip + ":8080/" + path}}}
}

func httpHook(ip, path string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Host: ip, Path: "/" + path, Port: intstr.FromInt32(8080)}}
}

func (w *world) postStart(hook *corev1.LifecycleHandler, path string) {
	w.t.Helper()
	pod := w.lasting("hooked")
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: hook}
	w.start(pod)
	w.logged("told", "c", "GET /"+path)
}

func (w *world) preStop(hook *corev1.LifecycleHandler, path string) {
	w.t.Helper()
	pod := w.lasting("hooked")
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: hook}
	w.start(pod)
	w.delete("hooked")
	w.gone("hooked")
	w.logged("told", "c", "GET /"+path)
}

func postStartExec(w *world) { w.postStart(execHook(w.told(), "poststart-exec"), "poststart-exec") }
func postStartHTTP(w *world) { w.postStart(httpHook(w.told(), "poststart-http"), "poststart-http") }
func preStopExec(w *world)   { w.preStop(execHook(w.told(), "prestop-exec"), "prestop-exec") }
func preStopHTTP(w *world)   { w.preStop(httpHook(w.told(), "prestop-http"), "prestop-http") }

// preStopWithinGrace: the container is signalled only when its hook has ended.
func preStopWithinGrace(w *world) {
	ip := w.told()
	get := "wget -q -O - http://" + ip + ":8080/"
	pod := w.script("tester", "trap '"+get+"second; exit 0' TERM; while :; do sleep 0.1; done")
	grace := int64(30)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
		Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "sleep 1; " + get + "first"}}}}
	w.start(pod)
	w.delete("tester")
	w.gone("tester")
	w.logged("told", "c", "GET /second")
	first, second := -1, -1
	for i, line := range strings.Split(w.logs("told", "c"), "\n") {
		switch {
		case strings.HasPrefix(line, "GET /first "):
			first = i
		case strings.HasPrefix(line, "GET /second "):
			second = i
		}
	}
	if first < 0 || second < first {
		w.t.Errorf("told in the wrong order: %s", w.logs("told", "c"))
	}
}
