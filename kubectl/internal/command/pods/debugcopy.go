package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// createCopy makes a pod like the given one, with the container added or images changed.
func (d *debugOptions) createCopy(ctx context.Context, from *core.Pod, container corev1.Container) error {
	pod := &core.Pod{Spec: *from.Spec.DeepCopy()}
	pod.Name, pod.Labels, pod.Annotations = d.copyTo, from.Labels, from.Annotations
	pod.Spec.EphemeralContainers = nil
	if !d.sameNode {
		pod.Spec.NodeName = ""
	}
	if d.shareSaid {
		pod.Spec.ShareProcessNamespace = &d.shareProc
	}
	if err := d.setImages(pod); err != nil {
		return err
	}
	if err := d.addToCopy(pod, &container); err != nil {
		return err
	}
	if d.replace { // at once, so that the copy finds the node's room and the name free
		client, err := d.Server()
		if err != nil {
			return err
		}
		if err := client.Resource(core.Pods, from.Namespace).Delete(ctx, from.Name, metav1.NewDeleteOptions(0), nil); err != nil {
			return err
		}
	}
	return d.create(ctx, pod, container.Name)
}

// addToCopy adds the container to a copy, or makes it of the one that has its name. Unless
// --keep-labels is given, no controller or service selects the copy then. A copy of which
// only images are changed stays as it is, labels included, as kubectl has it.
func (d *debugOptions) addToCopy(pod *core.Pod, container *corev1.Container) error {
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container.Name })
	if at < 0 && d.image == "" {
		container.Name = pod.Spec.Containers[0].Name
		return nil
	}
	d.keep.strip(pod, d.profile == "legacy")
	if d.profile != "legacy" && pod.Spec.ShareProcessNamespace == nil {
		pod.Spec.ShareProcessNamespace = new(true)
	}
	if at >= 0 {
		return d.changeContainer(&pod.Spec.Containers[at], *container)
	}
	if d.container == "" {
		d.printf("Defaulting debug container name to %s.\n", container.Name)
	}
	pod.Spec.Containers = append(pod.Spec.Containers, *container)
	d.warnUnprivileged(pod, container)
	return nil
}

// setImages changes images as --set-image says.
func (d *debugOptions) setImages(pod *core.Pod) error {
	for _, setting := range d.setImage {
		name, image, ok := strings.Cut(setting, "=")
		if !ok {
			return fmt.Errorf("invalid --set-image %q: expected name=image", setting)
		}
		for i := range pod.Spec.Containers {
			if name == "*" || pod.Spec.Containers[i].Name == name {
				pod.Spec.Containers[i].Image = image
			}
		}
	}
	return nil
}

// changeContainer makes one of the copied pod's containers the one to debug
// with.
func (d *debugOptions) changeContainer(one *corev1.Container, container corev1.Container) error {
	if d.image != "" {
		one.Image = d.image
	}
	if len(container.Command)+len(container.Args) > 0 {
		one.Command, one.Args = container.Command, container.Args
	}
	one.Stdin, one.TTY = d.stdin, d.tty
	d.rights.applyTo(one)
	return d.customize(one)
}
