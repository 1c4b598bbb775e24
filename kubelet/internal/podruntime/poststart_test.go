package podruntime

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/runtimestate"
)

// The hook of a proxy waits until the proxy is ready; the program that needs it comes after it.
func TestContainersWaitForThePostStartHookBeforeThem(t *testing.T) {
	b := newBed(t)
	proxy := shell("proxy", forever)
	proxy.Lifecycle = &corev1.Lifecycle{PostStart: exec("for i in $(seq 20); do wget -q -O /dev/null http://127.0.0.1:8080/ok && exit 7; usleep 100000; done")}
	program := shell("program", "mkdir -p /tmp/www; echo hi > /tmp/www/ok; cd /tmp/www; httpd -p 8080; "+forever)
	pod := newPod("proxied", shell("first", forever), proxy, program)
	r := b.sync(t, pod, SyncOptions{})
	if w := r.Waiting["proxy"]; w.Reason != "" {
		t.Errorf("the program ran before the hook of the proxy was over: %+v", w)
	}
	for _, name := range []string{"first", "proxy", "program"} {
		if c := r.Status.Container(name); c == nil || c.State != runtimestate.StateRunning {
			t.Errorf("%s is %+v", name, c)
		}
	}
}
