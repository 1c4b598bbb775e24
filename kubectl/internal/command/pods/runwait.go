package pods

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/progress"
	"kctl/proto/core"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// observation is what is new about the pod.
type observation struct {
	pod   *core.Pod
	event *core.Event
	err   error
}

// maxEvents bounds the events of a pod that are kept while waiting for it.
const maxEvents = 100

// waitReady shows the pod's progress until it is ready, has ended, or time is up.
func (r *runOptions) waitReady(ctx context.Context, pod *core.Pod) error {
	var last progress.View
	settled, err := r.observe(ctx, pod, r.timeout, r.display(), func(view progress.View, _ *core.Pod) bool {
		last = view
		return view.Ended
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fmt.Errorf("timed out waiting for pod %q after %s: %s", pod.Name, r.timeout, orUnknown(last.Problem))
	case err != nil && ctx.Err() != nil:
		r.sayLeft(pod, last)
		return ctx.Err()
	case err != nil:
		return err
	}
	if settled.Status.Phase == corev1.PodFailed {
		return fmt.Errorf("pod %q failed: %s", pod.Name, orUnknown(last.Problem))
	}
	return nil
}

// sayLeft says what an interrupted wait leaves behind.
func (r *runOptions) sayLeft(pod *core.Pod, last progress.View) {
	fmt.Fprintf(r.Err, "Stopped waiting. Pod %q is still there (%s): see \"%s get pod %s\" and \"kctl trace pod/%s\".\n",
		pod.Name, last.Now(), r.Name, pod.Name, pod.Name)
}

func orUnknown(problem string) string { return cmp.Or(problem, "no reason is known yet") }

// untilStarted waits until the pod's containers run, or have already ended.
func (r *runOptions) untilStarted(ctx context.Context, pod *core.Pod) (*core.Pod, error) {
	var last progress.View
	started, err := r.observe(ctx, pod, r.podTimeout, r.display(), func(view progress.View, p *core.Pod) bool {
		last = view
		return p.Status.Phase == corev1.PodRunning || core.Ended(p.Status.Phase)
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("timed out waiting for pod %q to run after %s: %s", pod.Name, r.podTimeout, orUnknown(last.Problem))
	}
	if err != nil && ctx.Err() != nil && !r.remove {
		r.sayLeft(pod, last)
	}
	return started, err
}

// redrawEvery is how often moving parts are redrawn on a terminal.
const redrawEvery = 100 * time.Millisecond

// observe follows the pod and its events, showing each change, until enough
// returns true.
func (r *runOptions) observe(ctx context.Context, pod *core.Pod, timeout time.Duration, display progress.Display,
	enough func(progress.View, *core.Pod) bool) (*core.Pod, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	news := make(chan observation)
	done := make(chan struct{}, 2)
	go func() { r.watchPod(ctx, pod, news); done <- struct{}{} }()
	go func() { r.watchPodEvents(ctx, pod, news); done <- struct{}{} }()
	defer func() { cancel(); <-done; <-done }()

	defer display.Close()
	tick := r.Clock.NewTicker(redrawEvery)
	defer tick.Stop()

	latest, happened := pod, []core.Event{}
	for {
		view := progress.Look(latest, happened)
		display.Show(view)
		if enough(view, latest) {
			return latest, nil
		}
		o, err := nextObservation(ctx, news, tick.C(), display)
		if err != nil {
			return nil, err
		}
		if o.pod != nil {
			latest = o.pod
		}
		if o.event != nil && len(happened) < maxEvents {
			happened = append(happened, *o.event)
		}
	}
}

// nextObservation waits for something new, moving the display meanwhile.
func nextObservation(ctx context.Context, news <-chan observation, tick <-chan time.Time, display progress.Display) (observation, error) {
	for {
		select {
		case <-ctx.Done():
			return observation{}, ctx.Err()
		case o := <-news:
			return o, o.err
		case <-tick:
			display.Tick()
		}
	}
}

func (r *runOptions) display() progress.Display {
	width, isTerminal := frame.Terminal(r.Err)
	switch {
	case r.quiet:
		return &progress.Plain{Out: io.Discard}
	case isTerminal && frame.Movable():
		return &progress.Live{Out: r.Err, Width: width, Color: frame.Colorful(r.Err), Clock: r.Clock}
	}
	return &progress.Plain{Out: r.Err}
}

// watchPod sends each state of the pod; that it is gone is an error.
func (r *runOptions) watchPod(ctx context.Context, pod *core.Pod, news chan<- observation) {
	t := lookup.Target{Resource: discover.Resource{Resource: core.Pods}, Namespace: pod.Namespace, ObjectName: pod.Name}
	options := []rest.Option{rest.FieldSelector(fields.OneTermEqualSelector("metadata.name", pod.Name).String())}
	err := lookup.Changes(ctx, r.Sender.CLI, lookup.Watch{Target: t, Version: pod.ResourceVersion, Options: options},
		func(change rest.Event) error {
			latest := &core.Pod{}
			if err := json.Unmarshal(change.Object, latest); err != nil {
				return fmt.Errorf("decode pod: %w", err)
			}
			if change.Type == string(watch.Deleted) || latest.UID != pod.UID {
				return fmt.Errorf("pod %q was deleted", pod.Name)
			}
			return sendObservation(ctx, news, observation{pod: latest})
		})
	_ = sendObservation(ctx, news, observation{err: err})
}

// watchPodEvents sends the pod's events. Without them only reasons are missing,
// so users who may not see events can wait as well.
func (r *runOptions) watchPodEvents(ctx context.Context, pod *core.Pod, news chan<- observation) {
	t := lookup.Target{Resource: discover.Resource{Resource: core.Events}, Namespace: pod.Namespace}
	options := []rest.Option{rest.FieldSelector(fields.OneTermEqualSelector("involvedObject.uid", string(pod.UID)).String())}
	err := lookup.Changes(ctx, r.Sender.CLI, lookup.Watch{Target: t, Version: pod.ResourceVersion, Options: options},
		func(change rest.Event) error {
			event := &core.Event{}
			if err := json.Unmarshal(change.Object, event); err != nil {
				return fmt.Errorf("decode event: %w", err)
			}
			if change.Type == string(watch.Deleted) {
				return nil
			}
			return sendObservation(ctx, news, observation{event: event})
		})
	if ctx.Err() == nil && !apierrors.IsForbidden(err) {
		r.Warn("the pod's events can't be watched: %v", err)
	}
}

func sendObservation(ctx context.Context, news chan<- observation, o observation) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case news <- o:
		return nil
	}
}
