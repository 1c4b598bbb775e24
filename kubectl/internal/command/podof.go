package command

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// podOf finds the pod that an argument means: a pod, or the first one of what
// runs pods, ready ones first. object is what was named.
func (c *cli) podOf(ctx context.Context, arg string) (pod *core.Pod, object *unstructured.Unstructured, err error) {
	if name, err := podName(arg); err == nil {
		namespace, err := c.namespace()
		if err != nil {
			return nil, nil, err
		}
		client, err := c.server()
		if err != nil {
			return nil, nil, err
		}
		pod := &core.Pod{}
		return pod, nil, client.Resource(core.Pods, namespace).Get(ctx, name, pod)
	}
	object, err = c.one(ctx, arg)
	if err != nil {
		return nil, nil, err
	}
	pods, err := c.podsOf(ctx, object)
	if err != nil {
		return nil, nil, err
	}
	if len(pods) == 0 {
		return nil, nil, fmt.Errorf("no pods found for %s", arg)
	}
	if len(pods) > 1 {
		fmt.Fprintf(c.Err, "Found %d pods, using pod/%s\n", len(pods), pods[0].Name)
	}
	return &pods[0], object, nil
}

// podsOf are the pods of an object that runs some, the most useful first.
func (c *cli) podsOf(ctx context.Context, object *unstructured.Unstructured) ([]core.Pod, error) {
	selector, err := selectorOf(object)
	if err != nil {
		return nil, fmt.Errorf("cannot find the pods of %s: %w", strings.ToLower(object.GetKind()), err)
	}
	if selector == "" {
		return nil, errors.New("the object selects no pods")
	}
	client, err := c.server()
	if err != nil {
		return nil, err
	}
	var found struct{ Items []core.Pod }
	if err := client.Resource(core.Pods, object.GetNamespace()).List(ctx, &found, rest.LabelSelector(selector)); err != nil {
		return nil, err
	}
	rank := func(pod *core.Pod) int {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return 0
			}
		}
		if pod.Status.Phase == corev1.PodRunning {
			return 1
		}
		return 2
	}
	sort.SliceStable(found.Items, func(i, j int) bool { return rank(&found.Items[i]) < rank(&found.Items[j]) })
	return found.Items, nil
}
