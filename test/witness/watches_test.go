package witness_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"

	"kctl/test/harness"
)

func asStatus(err error, into *apierrors.APIStatus) bool { return errors.As(err, into) }

// journal is what an event handler was called with, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// becomes waits until there are just these lines, in any order: an informer's
// initial list has none.
func (j *journal) becomes(b bed, want ...string) {
	b.Helper()
	harness.Eventually(b, patience, func() error {
		if got := slices.Sorted(slices.Values(j.read())); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			return fmt.Errorf("told of %q, want %q", got, want)
		}
		return nil
	})
}

// watchList: a list sent as a watch, with a bookmark at its end.
func watchList(b bed) {
	b.made("one", "1")
	last := b.made("two", "2")
	maps := b.client.CoreV1().ConfigMaps(b.namespace)
	w, err := maps.Watch(b.Context(), metav1.ListOptions{
		SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		ResourceVersion: last.ResourceVersion, FieldSelector: "metadata.name!=kube-root-ca.crt"})
	b.must(err)
	defer w.Stop()
	var seen []string
	for event := range w.ResultChan() {
		m := event.Object.(*corev1.ConfigMap)
		if event.Type == watch.Bookmark {
			if m.Annotations[metav1.InitialEventsAnnotationKey] != "true" || m.ResourceVersion == "" {
				b.Errorf("the bookmark is %+v", m.ObjectMeta)
			}
			break
		}
		seen = append(seen, string(event.Type)+" "+m.Name)
	}
	if want := []string{"ADDED one", "ADDED two"}; !slices.Equal(seen, want) {
		b.Errorf("initial events: %v, want %v", seen, want)
	}
	b.made("three", "3")
	if event := <-w.ResultChan(); event.Type != watch.Added || event.Object.(*corev1.ConfigMap).Name != "three" {
		b.Errorf("after the bookmark: %+v", event)
	}
}

// follow has an informer write a journal of the namespace's config maps.
func (b bed) follow(ctx context.Context) *journal {
	b.Helper()
	j := &journal{}
	factory := informers.NewSharedInformerFactoryWithOptions(b.client, 0, informers.WithNamespace(b.namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name!=kube-root-ca.crt" }))
	informer := factory.Core().V1().ConfigMaps().Informer()
	say := func(what string, obj any) {
		if m, ok := obj.(*corev1.ConfigMap); ok {
			j.note(what + " " + m.Name + "=" + m.Data["a"])
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { say("added", obj) },
		UpdateFunc: func(old, obj any) {
			if old.(*corev1.ConfigMap).ResourceVersion != obj.(*corev1.ConfigMap).ResourceVersion {
				say("changed", obj)
			}
		},
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			say("deleted", obj)
		},
	})
	b.must(err)
	b.Cleanup(factory.Shutdown)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return j
}

// restarted: an informer survives a restart of the server and misses nothing. A
// watch from a revision before the restart gets every event since.
func restarted(b bed) {
	maps := b.client.CoreV1().ConfigMaps(b.namespace)
	kept := b.made("kept", "1")
	b.made("going", "1")
	ctx, cancel := context.WithCancel(b.Context())
	j := b.follow(ctx)
	defer cancel()
	j.becomes(b, "added going=1", "added kept=1")
	b.c.Restart("apiserver")
	b.must(maps.Delete(b.Context(), "going", metav1.DeleteOptions{}))
	harness.Eventually(b, patience, func() error {
		if got := j.read(); !slices.Contains(got, "deleted going=1") {
			return fmt.Errorf("told of %q", got)
		}
		return nil
	})
	_, err := maps.Update(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Data: map[string]string{"a": "2"}}, metav1.UpdateOptions{})
	b.must(err)
	j.becomes(b, "added going=1", "added kept=1", "deleted going=1", "changed kept=2")

	w, err := maps.Watch(b.Context(), metav1.ListOptions{ResourceVersion: kept.ResourceVersion, FieldSelector: "metadata.name!=kube-root-ca.crt"})
	b.must(err)
	defer w.Stop()
	for _, want := range []string{"ADDED going", "DELETED going", "MODIFIED kept"} {
		event := <-w.ResultChan()
		if m, ok := event.Object.(*corev1.ConfigMap); !ok || fmt.Sprintf("%s %s", event.Type, m.Name) != want {
			b.Fatalf("got %s %+v, want %s", event.Type, event.Object, want)
		}
	}
}

// resumed: watches that the server ends are resumed at their revision, with
// every change in order and none twice.
func resumed(b bed) {
	maps := b.client.CoreV1().ConfigMaps(b.namespace)
	first := b.made("m0", "x")
	opened := &journal{}
	w, err := watchtools.NewRetryWatcherWithContext(b.Context(), first.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector, o.TimeoutSeconds = "metadata.name!=kube-root-ca.crt", new(int64(1))
			opened.note(o.ResourceVersion)
			return maps.Watch(ctx, o)
		},
	})
	b.must(err)
	defer w.Stop()
	for i := 1; i <= 3; i++ {
		harness.Eventually(b, patience, func() error {
			if since := opened.read(); len(since) < i || since[0] != first.ResourceVersion {
				return fmt.Errorf("watches were opened at %v, want %d, the first at %s", since, i, first.ResourceVersion)
			}
			return nil
		})
		made := b.made(fmt.Sprintf("m%d", i), "x")
		event, ok := <-w.ResultChan()
		if m, isMap := event.Object.(*corev1.ConfigMap); !ok || !isMap || event.Type != watch.Added || m.Name != made.Name {
			b.Fatalf("after %s: %s %+v", made.Name, event.Type, event.Object)
		}
	}
}

// expired: a revision that etcd has compacted is answered with 410, and clients
// start over.
func expired(b bed) {
	maps := b.client.CoreV1().ConfigMaps(b.namespace)
	for i := range 6 {
		b.made(fmt.Sprintf("m%d", i), "x")
	}
	named := metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"}
	forget := func() {
		b.made(fmt.Sprintf("late-%s", time.Now().Format("150405.000000")), "x")
		b.etcd.Compact(b)
		b.c.Restart("apiserver") // its watch cache remembers more than etcd
	}
	page, err := maps.List(b.Context(), metav1.ListOptions{Limit: 2})
	b.must(err)
	forget()
	_, err = maps.List(b.Context(), metav1.ListOptions{Limit: 2, Continue: page.Continue})
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !asStatus(err, &status) || status.Status().Continue == "" {
		b.Fatalf("an old continue: %v", err)
	}
	rest, err := maps.List(b.Context(), metav1.ListOptions{Continue: status.Status().Continue})
	b.must(err)
	if len(page.Items)+len(rest.Items) < 7 || rest.Items[0].Name <= page.Items[1].Name {
		b.Errorf("going on in the present state: %d and %d", len(page.Items), len(rest.Items))
	}

	pages := 0
	lister := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		list, err := maps.List(ctx, o)
		if pages++; pages == 1 {
			forget()
		}
		return list, err
	})
	lister.PageSize = 2
	all, _, err := lister.List(b.Context(), named)
	b.must(err)
	if got := len(all.(*corev1.ConfigMapList).Items); got != 8 || pages != 3 { // 6, and 2 made by forget
		b.Errorf("the pager found %d, by %d requests", got, pages)
	}

	w, err := maps.Watch(b.Context(), metav1.ListOptions{ResourceVersion: page.ResourceVersion})
	if err == nil {
		defer w.Stop()
		err = apierrors.FromObject((<-w.ResultChan()).Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		b.Errorf("a watch from long ago: %v", err)
	}
}

// election: one candidate leads, and another when it releases the lease.
func election(b bed) {
	j := &journal{}
	run := func(ctx context.Context, name string) func() {
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "lead", Namespace: b.namespace},
			Client:     b.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: time.Second, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) { j.note(name + " leads") },
				OnStoppedLeading: func() {},
			},
		})
		b.must(err)
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			elector.Run(ctx)
		}()
		return func() { cancel(); <-done }
	}
	stopFirst := run(b.Context(), "first")
	j.becomes(b, "first leads")
	stopSecond := run(b.Context(), "second")
	defer stopSecond()
	lease, err := b.client.CoordinationV1().Leases(b.namespace).Get(b.Context(), "lead", metav1.GetOptions{})
	if err != nil || ptr.Deref(lease.Spec.HolderIdentity, "") != "first" {
		b.Errorf("the lease: %+v, %v", lease, err)
	}
	stopFirst()
	j.becomes(b, "first leads", "second leads")
}
