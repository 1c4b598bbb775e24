package conformance_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

var classes = []behaviour{
	{"RuntimeClass should reject a Pod requesting a deleted RuntimeClass", func(w *world) {
		name := w.runtimeClass(nil)
		w.must(w.client.NodeV1().RuntimeClasses().Delete(w.ctx, name, metav1.DeleteOptions{}))
		w.refusesClass(name)
	}},
	{"RuntimeClass should reject a Pod requesting a non-existent RuntimeClass", func(w *world) { w.refusesClass("nonexistent") }},
	{"RuntimeClass should schedule a Pod requesting a RuntimeClass and initialize its Overhead", func(w *world) {
		w.runsInClass(list("10m", "1Mi"))
	}},
	{"RuntimeClass should schedule a Pod requesting a RuntimeClass without PodOverhead", func(w *world) { w.runsInClass(nil) }},
	{"RuntimeClass should support RuntimeClasses API operations", runtimeClassAPI},
	{"Pods should contain environment variables for services", serviceVariables},
}

// runtimeClass creates a class with the runtime's default handler. Its name is
// this test's own, because classes have no namespace.
func (w *world) runtimeClass(overhead corev1.ResourceList) (name string) {
	w.t.Helper()
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: w.ns}, Handler: "runc"}
	if overhead != nil {
		class.Overhead = &nodev1.Overhead{PodFixed: overhead}
	}
	_, err := w.client.NodeV1().RuntimeClasses().Create(w.ctx, class, metav1.CreateOptions{})
	w.must(err)
	return w.ns
}

func (w *world) inClass(name string) *corev1.Pod {
	pod := w.lasting("classed")
	pod.Spec.RuntimeClassName = &name
	return pod
}

func (w *world) refusesClass(name string) {
	w.t.Helper()
	if _, err := w.pods().Create(w.ctx, w.inClass(name), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		w.t.Errorf("a pod of a class that is not there: %v, want it to be forbidden", err)
	}
}

func (w *world) runsInClass(overhead corev1.ResourceList) {
	w.t.Helper()
	w.Create(w.inClass(w.runtimeClass(overhead)))
	pod := w.await("classed", "scheduled", func(p *corev1.Pod) bool { return conditionStatus(p, corev1.PodScheduled) == corev1.ConditionTrue })
	if len(pod.Spec.Overhead) != len(overhead) || pod.Spec.Overhead.Cpu().Cmp(*overhead.Cpu()) != 0 {
		w.t.Errorf("its overhead is %v, want %v", pod.Spec.Overhead, overhead)
	}
}

func runtimeClassAPI(w *world) {
	api := w.client.NodeV1().RuntimeClasses()
	selector := metav1.ListOptions{LabelSelector: "test=" + w.ns}
	changes, err := api.Watch(w.ctx, selector)
	w.must(err)
	defer changes.Stop()
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: w.ns, Labels: map[string]string{"test": w.ns}}, Handler: "runc"}
	made, err := api.Create(w.ctx, class, metav1.CreateOptions{})
	w.must(err)
	w.sees(changes, watch.Added)
	if _, err := api.Create(w.ctx, class, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		w.t.Errorf("made twice: %v", err)
	}
	_, err = api.Patch(w.ctx, w.ns, types.MergePatchType, []byte(`{"metadata":{"annotations":{"patched":"true"}}}`), metav1.PatchOptions{})
	w.must(err)
	w.sees(changes, watch.Modified)
	made, err = api.Get(w.ctx, made.Name, metav1.GetOptions{})
	w.must(err)
	made.Annotations["updated"] = "true"
	updated, err := api.Update(w.ctx, made, metav1.UpdateOptions{})
	w.must(err)
	if updated.Annotations["patched"] != "true" || updated.Annotations["updated"] != "true" {
		w.t.Errorf("the annotations are %v", updated.Annotations)
	}
	w.must(api.DeleteCollection(w.ctx, metav1.DeleteOptions{}, selector))
	w.sees(changes, watch.Deleted)
	left, err := api.List(w.ctx, selector)
	w.must(err)
	if len(left.Items) != 0 {
		w.t.Errorf("left: %v", left.Items)
	}
}

func serviceVariables(w *world) {
	service, err := w.client.CoreV1().Services(w.ns).Create(w.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "fooservice"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "foo"}, Ports: []corev1.ServicePort{{Port: 8765}}},
	}, metav1.CreateOptions{})
	w.must(err)
	ip := service.Spec.ClusterIP
	// A kubelet learns of services by a watch: the pod may come before them.
	attempt := 0
	w.eventually(func() error {
		attempt++
		text := "\n" + w.output(w.script(fmt.Sprintf("client-%d", attempt), "env"))
		for _, line := range []string{
			"FOOSERVICE_SERVICE_HOST=" + ip, "FOOSERVICE_SERVICE_PORT=8765", "FOOSERVICE_PORT=tcp://" + ip + ":8765",
			"FOOSERVICE_PORT_8765_TCP=tcp://" + ip + ":8765", "FOOSERVICE_PORT_8765_TCP_PROTO=tcp",
			"FOOSERVICE_PORT_8765_TCP_PORT=8765", "FOOSERVICE_PORT_8765_TCP_ADDR=" + ip,
		} {
			if !strings.Contains(text, "\n"+line+"\n") {
				return fmt.Errorf("no %s in %s", line, text)
			}
		}
		return nil
	})
}
