package conformance_test

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var security = []behaviour{
	{"Security Context When creating a container with runAsUser should run the container with uid 65534 [LinuxOnly]", func(w *world) {
		w.secured("id -u", &corev1.SecurityContext{RunAsUser: new(int64(65534))}, "65534")
	}},
	{"Security Context When creating a pod with privileged should run the container as unprivileged when false [LinuxOnly]", func(w *world) {
		w.secured("ip link add dummy1 type dummy || echo refused", &corev1.SecurityContext{Privileged: new(false)}, "refused")
	}},
	{"Security Context When creating a pod with readOnlyRootFilesystem should run the container with writable rootfs when readOnlyRootFilesystem=false",
		func(w *world) {
			w.secured("echo written > /file && cat /file", &corev1.SecurityContext{ReadOnlyRootFilesystem: new(false)}, "written")
		}},
	{"Security Context should support container.SecurityContext.RunAsUser And container.SecurityContext.RunAsGroup [LinuxOnly]", func(w *world) {
		w.secured("id -u; id -g", &corev1.SecurityContext{RunAsUser: new(int64(1001)), RunAsGroup: new(int64(2002))}, "1001", "2002")
	}},
	{"Security Context should support pod.Spec.SecurityContext.RunAsUser And pod.Spec.SecurityContext.RunAsGroup [LinuxOnly]", func(w *world) {
		pod := w.script("secured", "id -u; id -g")
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(1001)), RunAsGroup: new(int64(2002))}
		w.prints(pod, "1001", "2002")
	}},
	{"Security Context when creating containers with AllowPrivilegeEscalation should not allow privilege escalation when false [LinuxOnly]", func(w *world) {
		w.secured("grep NoNewPrivs /proc/self/status", &corev1.SecurityContext{RunAsUser: new(int64(1000)), AllowPrivilegeEscalation: new(false)}, "NoNewPrivs:\t1")
	}},
}

func (w *world) secured(text string, context *corev1.SecurityContext, lines ...string) {
	w.t.Helper()
	pod := w.script("secured", text)
	pod.Spec.Containers[0].SecurityContext = context
	w.prints(pod, lines...)
}

var sysctls = []behaviour{
	{"Sysctls [LinuxOnly] should support sysctls [Environment:NotInUserNS]", func(w *world) {
		pod := w.script("sysctl", "cat /proc/sys/kernel/shm_rmid_forced")
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.shm_rmid_forced", Value: "1"}}}
		w.prints(pod, "1")
	}},
	{"Sysctls [LinuxOnly] should reject invalid sysctls", func(w *world) {
		for _, name := range []string{"foo-", "kernel..shmmax", "-", "net.ipv4.conf.all.@"} {
			pod := w.script("sysctl", "true")
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: name, Value: "1"}}}
			if _, err := w.pods().Create(w.ctx, pod, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
				w.t.Errorf("a pod with the sysctl %q: %v, want it to be invalid", name, err)
			}
		}
	}},
}

var expansions = []behaviour{
	{"Variable Expansion should allow composing env vars into new env vars", func(w *world) {
		pod := w.script("expanded", "env")
		pod.Spec.Containers[0].Env = []corev1.EnvVar{env("FOO", "foo-value"), env("BAR", "bar-value"), env("FOOBAR", "$(FOO);;$(BAR)"),
			env("KEPT", "$$(FOO) $(NONE)")}
		w.prints(pod, "FOO=foo-value", "BAR=bar-value", "FOOBAR=foo-value;;bar-value", "KEPT=$(FOO) $(NONE)")
	}},
	{"Variable Expansion should allow substituting values in a container's args", func(w *world) {
		pod := w.script("expanded", "")
		c := &pod.Spec.Containers[0]
		c.Env, c.Command, c.Args = []corev1.EnvVar{env("TEST_VAR", "test-value")}, []string{"echo"}, []string{"it is", "$(TEST_VAR)"}
		w.prints(pod, "it is test-value")
	}},
	{"Variable Expansion should allow substituting values in a container's command", func(w *world) {
		pod := w.script("expanded", "")
		c := &pod.Spec.Containers[0]
		c.Env, c.Command = []corev1.EnvVar{env("TEST_VAR", "test-value")}, []string{"echo", "$(TEST_VAR)"}
		w.prints(pod, "test-value")
	}},
	{"Variable Expansion should allow substituting values in a volume subpath", func(w *world) {
		pod := w.subPath("test -d /work/expanded/inner && test -d /sub && echo there", "$(POD_NAME)/inner", envField("POD_NAME", "metadata.name"))
		w.prints(pod, "there")
	}},
	{"Variable Expansion should fail substituting values in a volume subpath with absolute path", func(w *world) {
		w.subPathFails(w.subPath("true", "$(POD_NAME)", env("POD_NAME", "/tmp")))
	}},
	{"Variable Expansion should fail substituting values in a volume subpath with backticks", func(w *world) {
		w.subPathFails(w.subPath("true", "$(POD_NAME)", env("POD_NAME", "..")))
	}},
	{"Variable Expansion should succeed in writing subpaths in container", subPathWritten},
	{"Variable Expansion should verify that a failing subpath expansion can be modified during the lifecycle of a container", subPathRepaired},
}

// subPath is a pod with a volume at /work, of which a part is at /sub.
func (w *world) subPath(text, expression string, env ...corev1.EnvVar) *corev1.Pod {
	pod := w.script("expanded", text)
	pod.Spec.Volumes = []corev1.Volume{emptyDir("work")}
	c := &pod.Spec.Containers[0]
	c.Env = env
	c.VolumeMounts = []corev1.VolumeMount{{Name: "work", MountPath: "/work"}, {Name: "work", MountPath: "/sub", SubPathExpr: expression}}
	return pod
}

func (w *world) subPathFails(pod *corev1.Pod) {
	w.t.Helper()
	w.Create(pod)
	got := w.await(pod.Name, "refused", waitsFor("CreateContainerConfigError"))
	if got.Status.Phase != corev1.PodPending {
		w.t.Errorf("it is %s", got.Status.Phase)
	}
	w.event(pod.Name, "Failed", "subPath")
}

func waitsFor(reason string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		s := p.Status.ContainerStatuses
		return len(s) == 1 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == reason
	}
}

func subPathWritten(w *world) {
	pod := w.subPath("while :; do sleep 0.1; done", "$(ANNOTATION)", envField("ANNOTATION", "metadata.annotations['mysubpath']"))
	pod.Annotations = map[string]string{"mysubpath": "mypath"}
	w.start(pod)
	w.exec("expanded", "c", "sh", "-c", "echo written > /work/mypath/test.log")
	if got := w.exec("expanded", "c", "cat", "/sub/test.log"); got != "written\n" {
		w.t.Errorf("below the subpath is %q", got)
	}
	// The mount stays as it is when the annotation changes.
	w.update("expanded", func(p *corev1.Pod) { p.Annotations["mysubpath"] = "newsubpath" })
	w.observed("expanded", 1)
	if got := w.exec("expanded", "c", "cat", "/sub/test.log"); got != "written\n" {
		w.t.Errorf("then, below the subpath is %q", got)
	}
}

func subPathRepaired(w *world) {
	pod := w.subPath("while :; do sleep 0.1; done", "$(ANNOTATION)/$(POD_NAME)",
		envField("POD_NAME", "metadata.name"), envField("ANNOTATION", "metadata.annotations['mysubpath']"))
	pod.Annotations = map[string]string{"mysubpath": "/wrong"}
	w.subPathFails(pod)
	_, err := w.pods().Patch(w.ctx, "expanded", types.MergePatchType, []byte(`{"metadata":{"annotations":{"mysubpath":"right"}}}`), metav1.PatchOptions{})
	w.must(err)
	w.await("expanded", "Running", inPhase(corev1.PodRunning))
	w.exec("expanded", "c", "test", "-d", "/work/right/expanded")
}
