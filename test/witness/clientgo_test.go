package witness_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"

	"kctl/test/harness"
)

func TestClientGo(t *testing.T) {
	c := harness.Start(t, harness.Options{})
	t.Run("informer", func(t *testing.T) { informer(t, c.In(t)) })
	t.Run("protobuf", func(t *testing.T) { protobuf(t, c.In(t)) })
	t.Run("conflict", func(t *testing.T) { conflict(t, c.In(t)) })
	t.Run("paging", func(t *testing.T) { paging(t, c.In(t)) })
	t.Run("delete collection", func(t *testing.T) { deleteCollection(t, c.In(t)) })
	t.Run("namespace end", func(t *testing.T) { namespaceEnd(t, c.In(t)) })
}

// informer has a shared informer follow a pod from its creation to its end.
func informer(t *testing.T, c *harness.Cluster) {
	client := c.Client()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
	pods := factory.Core().V1().Pods().Informer()
	var mu sync.Mutex
	var seen []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		if len(seen) == 0 || seen[len(seen)-1] != what {
			seen = append(seen, what)
		}
	}
	gone := make(chan struct{})
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { note("added") },
		UpdateFunc: func(_, obj any) {
			if pod := obj.(*corev1.Pod); pod.Labels["patched"] == "yes" {
				note("patched")
			} else if pod.Status.Phase == corev1.PodRunning {
				note("running")
			}
		},
		DeleteFunc: func(any) { note("deleted"); close(gone) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	c.Create(harness.Pod("informed", harness.Demo))
	c.AwaitRunning("informed")
	if _, err := client.CoreV1().Pods("default").Patch(ctx, "informed", types.StrategicMergePatchType,
		[]byte(`{"metadata":{"labels":{"patched":"yes"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 30*time.Second, func() error {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(seen, "patched") {
			return fmt.Errorf("the informer has seen %v", seen)
		}
		return nil
	})
	if err := client.CoreV1().Pods("default").Delete(ctx, "informed", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	<-gone
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"added", "running", "patched", "deleted"}; !slices.Equal(seen, want) {
		t.Errorf("the informer has seen %v, want %v", seen, want)
	}
}

func protobuf(t *testing.T, c *harness.Cluster) {
	config := c.Config("admin")
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps("default")
	w, err := maps.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "binary"}, Data: map[string]string{"a": "b"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := maps.Get(t.Context(), "binary", metav1.GetOptions{})
	if err != nil || got.Data["a"] != "b" || got.UID == "" {
		t.Errorf("got %+v, %v", got, err)
	}
	for event := range w.ResultChan() {
		if m, ok := event.Object.(*corev1.ConfigMap); ok && m.Name == "binary" {
			break
		}
	}
	if list, err := maps.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) == 0 {
		t.Errorf("list: %+v, %v", list, err)
	}
}

func conflict(t *testing.T, c *harness.Cluster) {
	maps := c.Client().CoreV1().ConfigMaps("default")
	created, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "counter"}, Data: map[string]string{"first": ""}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Create(t.Context(), created, metav1.CreateOptions{}); err == nil {
		t.Error("created with a resourceVersion set")
	}
	again := created.DeepCopy()
	again.ResourceVersion = ""
	if _, err := maps.Create(t.Context(), again, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created twice: %v", err)
	}
	// Many writers, each of which retries after a conflict: no update is lost.
	const writers = 64
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			err := retry.OnError(retry.DefaultBackoff, func(err error) bool { return apierrors.IsConflict(err) }, func() error {
				for {
					m, err := maps.Get(t.Context(), "counter", metav1.GetOptions{})
					if err != nil {
						return err
					}
					m.Data[fmt.Sprint(i)] = ""
					if _, err = maps.Update(t.Context(), m, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
						return err
					}
				}
			})
			if err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	m, err := maps.Get(t.Context(), "counter", metav1.GetOptions{})
	if err != nil || len(m.Data) != 1+writers {
		t.Errorf("%d writers left %v, %v", writers, m.Data, err)
	}
	stale := created.DeepCopy()
	if _, err := maps.Update(t.Context(), stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a stale update: %v", err)
	}
}

func paging(t *testing.T, c *harness.Cluster) {
	maps := c.Client().CoreV1().ConfigMaps("default")
	const total = 25
	for i := range total {
		if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("page-%02d", i), Labels: map[string]string{"paged": ""},
		}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	next := ""
	for {
		page, err := maps.List(t.Context(), metav1.ListOptions{Limit: 10, Continue: next, LabelSelector: "paged"})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Items {
			names = append(names, m.Name)
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	if len(names) != total || !slices.IsSorted(names) {
		t.Errorf("paged through %v", names)
	}
}

func deleteCollection(t *testing.T, c *harness.Cluster) {
	maps := c.Client().CoreV1().ConfigMaps("default")
	if err := maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "paged"}); err != nil {
		t.Fatal(err)
	}
	left, err := maps.List(t.Context(), metav1.ListOptions{LabelSelector: "paged"})
	if err != nil || len(left.Items) != 0 {
		t.Errorf("left: %d, %v", len(left.Items), err)
	}
}

func namespaceEnd(t *testing.T, c *harness.Cluster) {
	client := c.Client()
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "passing"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 30*time.Second, func() error {
		_, err := client.CoreV1().ServiceAccounts("passing").Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	pod := harness.Pod("inside", harness.Demo)
	pod.Namespace = "passing"
	c.Create(pod)
	c.Await("passing", "inside", "Running", harness.Running)
	if err := client.CoreV1().Namespaces().Delete(t.Context(), "passing", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	late := harness.Pod("late", harness.Demo)
	late.Namespace = "passing"
	if _, err := client.CoreV1().Pods("passing").Create(t.Context(), late, metav1.CreateOptions{}); !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		t.Errorf("a pod into an ending namespace: %v", err)
	}
	harness.Eventually(t, 60*time.Second, func() error {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), "passing", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the namespace is still there: %v", err)
	})
}
