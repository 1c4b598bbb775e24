package pods

import (
	"cmp"
	"context"
	"errors"

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
	d.setImages(pod)
	debugged, err := d.addToCopy(pod, container)
	if err != nil {
		return err
	}
	copied, err := d.create(ctx, pod)
	if err != nil {
		return err
	}
	if d.replace { // only now: a copy may be refused
		client, err := d.Server()
		if err != nil {
			return err
		}
		now := metav1.NewDeleteOptions(0)
		now.Preconditions = metav1.NewUIDPreconditions(string(from.UID))
		if err := client.Resource(core.Pods, from.Namespace).Delete(ctx, from.Name, now, nil); err != nil {
			return err
		}
	}
	return d.attachOrShowLogs(ctx, copied, debugged)
}

// addToCopy adds the container to a copy, or makes it of the one that has its name, and
// returns the name of the one to debug with. Unless --keep-labels is given, no controller or
// service selects the copy then. A copy of which only images are changed stays as it is,
// labels included, and there is none to debug with, as kubectl has it.
func (d *debugOptions) addToCopy(pod *core.Pod, container corev1.Container) (string, error) {
	there := core.FindContainer(pod, container.Name)
	switch {
	case there != nil || d.image != "":
	case len(d.setImage) > 0:
		return "", nil
	default:
		return "", errors.New("you must specify image when creating new container")
	}
	d.keep.strip(pod, d.profile == "legacy")
	if d.profile != "legacy" && pod.Spec.ShareProcessNamespace == nil {
		pod.Spec.ShareProcessNamespace = new(true)
	}
	if there != nil {
		return there.Name, d.changeContainer(there)
	}
	if d.container == "" {
		d.printf("Defaulting debug container name to %s.\n", container.Name)
	}
	pod.Spec.Containers = append(pod.Spec.Containers, container)
	d.warnUnprivileged(pod, &container)
	return container.Name, nil
}

// setImages changes images as --set-image says: of the containers it names, and of all others
// if it names *.
func (d *debugOptions) setImages(pod *core.Pod) {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if image := cmp.Or(d.setImage[c.Name], d.setImage["*"]); image != "" {
			c.Image = image
		}
	}
}

// changeContainer makes one of the copied pod's containers the one to debug with: what the
// command line does not name stays as it was.
func (d *debugOptions) changeContainer(one *corev1.Container) error {
	one.Image = cmp.Or(d.image, one.Image)
	one.ImagePullPolicy = cmp.Or(corev1.PullPolicy(d.imagePullPolicy), one.ImagePullPolicy)
	if len(d.env) > 0 {
		one.Env = d.variables()
	}
	d.setCommand(one)
	one.Stdin, one.TTY = d.stdin, d.tty
	d.rights.applyTo(one)
	return d.customize(one)
}
