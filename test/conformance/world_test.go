package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/remotecommand"

	"kctl/proto/core"
	"kctl/test/harness"
)

type images struct{ shell, entrypoint, grpc string }

// world is one behaviour's part of the cluster: a namespace, and what works in
// it.
type world struct {
	*harness.Cluster
	images

	t      *testing.T
	ctx    context.Context
	client *kubernetes.Clientset
	ns     string
}

func newWorld(t *testing.T, c *harness.Cluster, images images) *world {
	t.Helper()
	w := &world{Cluster: c, images: images, t: t, ctx: t.Context(), client: c.Client()}
	ns, err := w.client.CoreV1().Namespaces().Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"}}, metav1.CreateOptions{})
	w.must(err)
	w.ns = ns.Name
	t.Cleanup(func() {
		if err := w.client.CoreV1().Namespaces().Delete(context.WithoutCancel(w.ctx), w.ns, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete the test's namespace: %v", err)
		}
	})
	harness.Eventually(t, 30*time.Second, func() error {
		_, err := w.client.CoreV1().ServiceAccounts(w.ns).Get(w.ctx, "default", metav1.GetOptions{})
		return err
	})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// eventually is harness.Eventually with a limit that only failing tests reach.
func (w *world) eventually(try func() error) {
	w.t.Helper()
	harness.Eventually(w.t, 90*time.Second, try)
}

func (w *world) pods() typedcorev1.PodInterface { return w.client.CoreV1().Pods(w.ns) }

// script is a pod whose container c runs text as a shell script, once.
func (w *world) script(name, text string) *corev1.Pod {
	pod := harness.Pod(name, w.shell)
	pod.Namespace = w.ns
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Containers[0].Command = []string{"sh", "-c", text}
	return pod
}

// lasting is a pod that runs until it is told to end.
func (w *world) lasting(name string) *corev1.Pod {
	pod := w.script(name, "trap 'exit 0' TERM; while :; do sleep 0.1; done")
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	return pod
}

// demo is a pod that answers HTTP on 8080 and logs every request's path.
func (w *world) demo(name string) *corev1.Pod {
	pod := harness.Pod(name, harness.Demo)
	pod.Namespace = w.ns
	return pod
}

func (w *world) await(name, what string, ok func(*corev1.Pod) bool) *corev1.Pod {
	w.t.Helper()
	return w.Await(w.ns, name, what, ok)
}

func (w *world) start(pod *corev1.Pod) *corev1.Pod {
	w.t.Helper()
	w.Create(pod)
	return w.await(pod.Name, "Running", harness.Running)
}

func (w *world) ready(pod *corev1.Pod) *corev1.Pod {
	w.t.Helper()
	w.Create(pod)
	return w.await(pod.Name, "Ready", core.PodReady)
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func conditionStatus(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	if c := condition(pod, kind); c != nil {
		return c.Status
	}
	return corev1.ConditionUnknown
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Status.Phase == phase }
}

// output runs pod until it has succeeded, and returns what it printed.
func (w *world) output(pod *corev1.Pod) string {
	w.t.Helper()
	w.Create(pod)
	ended := w.await(pod.Name, "ended", func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	text := w.logs(pod.Name, pod.Spec.Containers[0].Name)
	if ended.Status.Phase != corev1.PodSucceeded {
		w.t.Fatalf("pod %s %s: %s", pod.Name, ended.Status.Phase, text)
	}
	return text
}

// prints fails unless the pod succeeds and prints every one of the lines.
func (w *world) prints(pod *corev1.Pod, lines ...string) {
	w.t.Helper()
	text := "\n" + w.output(pod) + "\n"
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			w.t.Errorf("pod %s did not print %q but %s", pod.Name, line, text)
		}
	}
}

func (w *world) logs(pod, container string) string {
	w.t.Helper()
	data, err := w.pods().GetLogs(pod, &corev1.PodLogOptions{Container: container}).DoRaw(w.ctx)
	w.must(err)
	return string(data)
}

// logged waits until a container's log has text.
func (w *world) logged(pod, container, text string) {
	w.t.Helper()
	w.eventually(func() error {
		if got := w.logs(pod, container); !strings.Contains(got, text) {
			return fmt.Errorf("the log of %s has no %q: %q", pod, text, got)
		}
		return nil
	})
}

// exec runs a command in a container and returns its output.
func (w *world) exec(pod, container string, command ...string) string {
	w.t.Helper()
	out, err := w.tryExec(pod, container, command...)
	if err != nil {
		w.t.Fatalf("exec %v in %s: %v: %s", command, pod, err, out)
	}
	return out
}

func (w *world) tryExec(pod, container string, command ...string) (string, error) {
	request := w.client.CoreV1().RESTClient().Post().Namespace(w.ns).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(w.Config("admin"), "POST", request.URL())
	if err != nil {
		return "", err
	}
	var out, problems bytes.Buffer
	err = executor.StreamWithContext(w.ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &problems})
	return out.String() + problems.String(), err
}

func (w *world) delete(pod string) {
	w.t.Helper()
	w.must(w.pods().Delete(w.ctx, pod, metav1.DeleteOptions{}))
}

func (w *world) gone(pod string) {
	w.t.Helper()
	w.eventually(func() error {
		_, err := w.pods().Get(w.ctx, pod, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("pod %s is still there (%v)", pod, err)
	})
}

// event waits for an event about a pod.
func (w *world) event(pod, reason, text string) {
	w.t.Helper()
	w.eventually(func() error {
		list, err := w.client.CoreV1().Events(w.ns).List(w.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
		if err != nil {
			return err
		}
		var seen []string
		for _, e := range list.Items {
			if e.Reason == reason && strings.Contains(e.Message, text) {
				return nil
			}
			seen = append(seen, e.Reason+": "+e.Message)
		}
		return fmt.Errorf("no event %s of %s with %q, only %q", reason, pod, text, seen)
	})
}

// unchanged watches a pod for a while, in which ok must hold.
func (w *world) unchanged(pod string, while time.Duration, ok func(*corev1.Pod) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, while)
	defer cancel()
	watch, err := w.pods().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + pod})
	w.must(err)
	defer watch.Stop()
	for event := range watch.ResultChan() {
		p, is := event.Object.(*corev1.Pod)
		if !is {
			w.t.Fatalf("the watch says %v", event.Object)
		}
		if err := ok(p); err != nil {
			w.t.Fatal(err)
		}
	}
	if ctx.Err() == nil {
		w.t.Fatal("the watch ended early")
	}
}

func emptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

func env(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

func envField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func (w *world) contains(text, want string) {
	w.t.Helper()
	if !strings.Contains(text, want) {
		w.t.Errorf("there is no %q in %q", want, text)
	}
}
