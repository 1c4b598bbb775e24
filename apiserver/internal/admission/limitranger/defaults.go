package limitranger

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// setDefaults gives every container what it lacks, and annotates the pod with
// what was set.
func setDefaults(pod *core.Pod, r *corev1.LimitRange) {
	var notes []string
	for i := range r.Spec.Limits {
		item := &r.Spec.Limits[i]
		if item.Type != corev1.LimitTypeContainer || len(item.Default) == 0 && len(item.DefaultRequest) == 0 {
			continue
		}
		for j := range pod.Spec.Containers {
			notes = append(notes, fillDefaults(&pod.Spec.Containers[j], item, "container")...)
		}
		for j := range pod.Spec.InitContainers {
			notes = append(notes, fillDefaults(&pod.Spec.InitContainers[j], item, "init container")...)
		}
	}
	if len(notes) == 0 {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[annotation] = "LimitRanger plugin set: " + strings.Join(notes, "; ")
}

func fillDefaults(c *core.Container, item *corev1.LimitRangeItem, kind string) []string {
	var notes []string
	for _, part := range []struct {
		word string
		list *corev1.ResourceList
		from corev1.ResourceList
	}{{"request", &c.Resources.Requests, item.DefaultRequest}, {"limit", &c.Resources.Limits, item.Default}} {
		var set []string
		for name, amount := range part.from {
			if _, own := (*part.list)[name]; own {
				continue
			}
			if *part.list == nil {
				*part.list = corev1.ResourceList{}
			}
			(*part.list)[name] = amount.DeepCopy()
			set = append(set, string(name))
		}
		if len(set) > 0 {
			slices.Sort(set)
			notes = append(notes, fmt.Sprintf("%s %s for %s %s", strings.Join(set, ", "), part.word, kind, c.Name))
		}
	}
	return notes
}
