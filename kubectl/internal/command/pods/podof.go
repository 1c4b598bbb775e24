package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/doctor"
	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// usualPodWait is the default of exec, attach and port-forward.
const usualPodWait = time.Minute

// podWait is how long to wait until a workload has a pod.
type podWait struct{ time.Duration }

func (p *podWait) add(fs *pflag.FlagSet, usual time.Duration) {
	fs.DurationVar(&p.Duration, "pod-running-timeout", usual,
		"The length of time (like 5s, 2m, or 3h, higher than zero) to wait until at least one pod is there.")
}

func (p podWait) check() error {
	if p.Duration <= 0 {
		return errors.New("--pod-running-timeout must be higher than zero")
	}
	return nil
}

// podOf finds the pod that an argument means: a pod, or the first one of a
// workload, ready ones first. If a workload has none, podOf waits for one.
// object is what was named.
func podOf(ctx context.Context, c *frame.CLI, arg string, wait podWait) (pod *core.Pod, object *unstructured.Unstructured, err error) {
	pods, object, err := meant(ctx, c, arg)
	if err != nil {
		return nil, nil, err
	}
	if len(pods) == 0 {
		pod, err := awaitPod(ctx, c, object, wait)
		return pod, object, err
	}
	if len(pods) > 1 {
		fmt.Fprintf(printer.VisibleTo(c.Err), "Found %d pods, using pod/%s\n", len(pods), pods[0].Name)
	}
	return &pods[0], object, nil
}

// onePod is the name of the pod that a verb's only argument names, or its two as those of
// get and describe do (pod NAME).
func onePod(cmd *cobra.Command, args []string) (string, error) {
	if len(args) == 2 {
		if name, err := lookup.PodName(args[0] + "/" + args[1]); err == nil && !strings.Contains(args[0]+args[1], "/") {
			return name, nil
		}
	}
	arg, err := frame.OneName(cmd, args)
	if err != nil {
		return "", err
	}
	return lookup.PodName(arg)
}

// PodNow is the pod that an argument means, as verbs about single pods would find it.
// It does not wait, and says nothing to the user.
func PodNow(ctx context.Context, c *frame.CLI, arg string) (*core.Pod, error) {
	pods, _, err := meant(ctx, c, arg)
	if err != nil {
		return nil, err
	}
	if len(pods) == 0 {
		return nil, fmt.Errorf("%s has no pods yet", arg)
	}
	return &pods[0], nil
}

// meant are the pods that an argument means now: one that it names, or those of a
// workload, which is object then.
func meant(ctx context.Context, c *frame.CLI, arg string) (pods []core.Pod, object *unstructured.Unstructured, err error) {
	if name, err := lookup.PodName(arg); err == nil {
		namespace, err := c.Namespace()
		if err != nil {
			return nil, nil, err
		}
		client, err := c.Server()
		if err != nil {
			return nil, nil, err
		}
		pod, err := lookup.GetPod(ctx, client, namespace, name)
		if err != nil {
			return nil, nil, err
		}
		return []core.Pod{*pod}, nil, nil
	}
	object, err = lookup.One(ctx, c, arg)
	if err != nil {
		return nil, nil, err
	}
	pods, err = podsOf(ctx, c, object)
	return pods, object, err
}

var errAppeared = errors.New("appeared")

// awaitPod waits for the first pod of an object that runs some.
func awaitPod(ctx context.Context, c *frame.CLI, object *unstructured.Unstructured, wait podWait) (*core.Pod, error) {
	selector, err := lookup.SelectorOf(object)
	if err != nil {
		return nil, err
	}
	if doctor.UnheardLong(object, c.Clock.Now()) {
		c.Warn("%s", doctor.UnheardText(object))
	}
	ctx, cancel := context.WithTimeout(ctx, wait.Duration)
	defer cancel()
	pod := &core.Pod{}
	pods := lookup.Target{Resource: discover.Resource{Resource: core.Pods}, Namespace: object.GetNamespace()}
	err = lookup.Changes(ctx, c, lookup.Watch{Target: pods, Options: []rest.Option{rest.LabelSelector(selector)}},
		func(event rest.Event) error {
			if event.Type == string(watch.Deleted) {
				return nil
			}
			if err := json.Unmarshal(event.Object, pod); err != nil {
				return fmt.Errorf("decode a pod: %w", err)
			}
			return errAppeared
		})
	switch {
	case errors.Is(err, errAppeared):
		return pod, nil
	case errors.Is(err, context.DeadlineExceeded):
		return nil, errors.New("timed out waiting for the condition")
	}
	return nil, err
}

// podsOf are the pods of an object that runs some, the most useful first. A pod, as
// pods.v1./NAME finds it, is its own.
func podsOf(ctx context.Context, c *frame.CLI, object *unstructured.Unstructured) ([]core.Pod, error) {
	if object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Pod") {
		pod := core.Pod{}
		if err := lookup.Typed(object, &pod); err != nil {
			return nil, err
		}
		return []core.Pod{pod}, nil
	}
	selector, err := lookup.SelectorOf(object)
	if err != nil {
		return nil, fmt.Errorf("cannot find the pods of %s: %w", strings.ToLower(object.GetKind()), err)
	}
	if selector == "" {
		return nil, errors.New("the object selects no pods")
	}
	client, err := c.Server()
	if err != nil {
		return nil, err
	}
	var found struct{ Items []core.Pod }
	if err := client.Resource(core.Pods, object.GetNamespace()).List(ctx, &found, rest.LabelSelector(selector)); err != nil {
		return nil, err
	}
	rank := func(pod *core.Pod) int {
		switch {
		case core.PodReady(pod):
			return 0
		case pod.Status.Phase == corev1.PodRunning:
			return 1
		}
		return 2
	}
	sort.SliceStable(found.Items, func(i, j int) bool { return rank(&found.Items[i]) < rank(&found.Items[j]) })
	return found.Items, nil
}
