package controllers

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
	"kctl/proto/rest"
)

var resourceQuotas = core.Resource{Version: "v1", Name: "resourcequotas", Kind: "ResourceQuota", Namespaced: true}

func quotaOf(name string, hard map[corev1.ResourceName]string, scopes ...corev1.ResourceQuotaScope) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}, Scopes: scopes}}
	for name, amount := range hard {
		q.Spec.Hard[name] = resource.MustParse(amount)
	}
	return q
}

// used waits until a quota's status has this usage.
func (c *cluster) used(namespace, name string, want map[corev1.ResourceName]string) {
	c.T.Helper()
	var q corev1.ResourceQuota
	c.Until(fmt.Sprintf("quota %s: %v", name, want), func(ctx context.Context) bool {
		q = corev1.ResourceQuota{}
		c.Must(c.Root().Resource(resourceQuotas, namespace).Get(ctx, name, &q))
		for name, amount := range want {
			used, ok := q.Status.Used[name]
			if !ok || used.Cmp(resource.MustParse(amount)) != 0 {
				return false
			}
		}
		return true
	})
}

func sized(name, cpu string) *core.Pod {
	p := servertest.Pod(name)
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
	return p
}

// TestResourceQuota checks a namespace with quotas; the messages are upstream
// 1.37's.
func TestResourceQuota(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Namespace("shop")
	ctx, root := t.Context(), c.Root()
	create := func(r core.Resource, obj core.Object, want string, options ...rest.Option) {
		t.Helper()
		err := root.Resource(r, "shop").Create(ctx, obj, nil, options...)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", obj.GetName(), err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%s:\n  got: %v\n want: %s", obj.GetName(), err, want)
		}
	}
	create(core.ConfigMaps, &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "before"}}, "")
	c.Until("the default service account", func(ctx context.Context) bool {
		var account core.ServiceAccount
		return root.Resource(core.ServiceAccounts, "shop").Get(ctx, "default", &account) == nil
	})
	create(resourceQuotas, quotaOf("a", map[corev1.ResourceName]string{
		"requests.cpu": "1", "pods": "2", "services.nodeports": "1", "count/secrets": "1", "count/roles.rbac.authorization.k8s.io": "0",
	}), "")
	create(resourceQuotas, quotaOf("best", map[corev1.ResourceName]string{"pods": "0"}, corev1.ResourceQuotaScopeBestEffort), "")

	// At once: no need to wait until a loop has seen the quota.
	create(core.Pods, servertest.Pod("silent"), `pods "silent" is forbidden: failed quota: a: must specify requests.cpu for: c`)
	create(core.Pods, sized("big", "1500m"),
		`pods "big" is forbidden: exceeded quota: a, requested: requests.cpu=1500m, used: requests.cpu=0, limited: requests.cpu=1`)
	create(core.Pods, sized("dry", "600m"), "", rest.Query("dryRun", "All"))
	create(core.Pods, sized("one", "600m"), "")
	create(core.Pods, sized("two", "600m"),
		`pods "two" is forbidden: exceeded quota: a, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1`)
	create(core.Pods, sized("two", "400m"), "")
	create(core.Pods, sized("three", "0"), `pods "three" is forbidden: exceeded quota: a, requested: pods=1, used: pods=2, limited: pods=2`)
	create(core.Services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, Name: "a"}, {Port: 81, Name: "b"}},
	}}, `services "s" is forbidden: exceeded quota: a, requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1`)
	create(core.Secrets, &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, "")
	create(core.Secrets, &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: "y"}},
		`secrets "y" is forbidden: exceeded quota: a, requested: count/secrets=1, used: count/secrets=1, limited: count/secrets=1`)
	c.used("shop", "a", map[corev1.ResourceName]string{"requests.cpu": "1", "pods": "2", "services.nodeports": "0", "count/secrets": "1"})
	c.used("shop", "best", map[corev1.ResourceName]string{"pods": "0"})

	t.Run("what goes is given back", func(t *testing.T) {
		c.Must(root.Resource(core.Pods, "shop").Delete(ctx, "one", &metav1.DeleteOptions{}, nil))
		c.Must(root.Resource(core.Secrets, "shop").Delete(ctx, "x", &metav1.DeleteOptions{}, nil))
		c.used("shop", "a", map[corev1.ResourceName]string{"requests.cpu": "400m", "pods": "1", "count/secrets": "0"})
	})
	t.Run("what was refused later is given back", func(t *testing.T) {
		// The quota is charged before the name turns out to be taken.
		if err := root.Resource(core.Pods, "shop").Create(ctx, sized("two", "100m"), nil); err == nil {
			t.Error("created twice")
		}
		c.used("shop", "a", map[corev1.ResourceName]string{"requests.cpu": "400m", "pods": "1"})
	})
	t.Run("what has ended is given back", func(t *testing.T) {
		answer, text := c.Request(http.MethodPatch, "/api/v1/namespaces/shop/pods/two/status", map[string]string{
			"Authorization": "Bearer master", "Content-Type": "application/merge-patch+json",
		}, `{"status":{"phase":"Succeeded"}}`)
		if answer.StatusCode != http.StatusOK {
			t.Fatal(text)
		}
		c.used("shop", "a", map[corev1.ResourceName]string{"requests.cpu": "0", "pods": "0"})
	})
	t.Run("what is there counts", func(t *testing.T) {
		create(resourceQuotas, quotaOf("maps", map[corev1.ResourceName]string{"count/configmaps": "9"}), "")
		c.used("shop", "maps", map[corev1.ResourceName]string{"count/configmaps": "2"}) // the other one is the cluster's CA
	})
}

// TestQuotaUnderManyWriters: of too many concurrent writers, exactly as many
// succeed as the quota has room for.
func TestQuotaUnderManyWriters(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Namespace("shop")
	const room, writers = 7, 24
	c.Must(c.Root().Resource(resourceQuotas, "shop").Create(t.Context(), quotaOf("q", map[corev1.ResourceName]string{"secrets": fmt.Sprint(room)}), nil))
	var made atomic.Int32
	var all sync.WaitGroup
	for i := range writers {
		client := c.Root()
		all.Go(func() {
			err := client.Resource(core.Secrets, "shop").Create(t.Context(), &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", i)}}, nil)
			switch {
			case err == nil:
				made.Add(1)
			case !strings.Contains(err.Error(), "exceeded quota: q"):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if made.Load() != room {
		t.Errorf("%d of %d were made", made.Load(), room)
	}
	c.used("shop", "q", map[corev1.ResourceName]string{"secrets": fmt.Sprint(room)})
}

// TestQuotaBesideAnotherThatCounts: kube-controller-manager, which also counts,
// may see a quota before it sees the pod that the quota was charged for. The
// status that it then writes must not let in more pods than the quota has room
// for.
func TestQuotaBesideAnotherThatCounts(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *config.Options) { o.Controllers = []string{"*", "-resourcequota-controller"} })
	c.Namespace("shop")
	ctx, pods := t.Context(), c.Root().Resource(core.Pods, "shop")
	c.Must(c.Root().Resource(resourceQuotas, "shop").Create(ctx, quotaOf("q", map[corev1.ResourceName]string{"pods": "1"}), nil))
	countedNothing := func() {
		answer, text := c.Request(http.MethodPatch, "/api/v1/namespaces/shop/resourcequotas/q/status", map[string]string{
			"Authorization": "Bearer master", "Content-Type": "application/merge-patch+json",
		}, `{"status":{"hard":{"pods":"1"},"used":{"pods":"0"}}}`)
		if answer.StatusCode != http.StatusOK {
			t.Fatal(text)
		}
	}
	c.Must(pods.Create(ctx, servertest.Pod("one"), nil))
	countedNothing()
	const want = `pods "two" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`
	if err := pods.Create(ctx, servertest.Pod("two"), nil); err == nil || err.Error() != want {
		t.Errorf("\n  got: %v\n want: %s", err, want)
	}
	// Once the status is right, there is room.
	c.Must(pods.Delete(ctx, "one", &metav1.DeleteOptions{}, nil))
	countedNothing()
	c.Must(pods.Create(ctx, servertest.Pod("three"), nil))
}

// TestPodsThatComeToEndCount: a pod that is given a deadline counts in the
// quotas for terminating pods, and can't be given one if these have no room.
func TestPodsThatComeToEndCount(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Namespace("shop")
	ends := quotaOf("ends", map[corev1.ResourceName]string{"pods": "1"})
	ends.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
		ScopeName: corev1.ResourceQuotaScopeTerminating, Operator: corev1.ScopeSelectorOpExists,
	}}}
	c.Must(c.Root().Resource(resourceQuotas, "shop").Create(t.Context(), ends, nil))
	c.used("shop", "ends", map[corev1.ResourceName]string{"pods": "0"})
	limit := func(name string) error {
		return c.Root().Do(t.Context(), http.MethodPatch, "/api/v1/namespaces/shop/pods/"+name,
			map[string]any{"spec": map[string]any{"activeDeadlineSeconds": 60}}, nil, rest.ContentType(string(types.MergePatchType)))
	}
	c.Created("shop", servertest.Pod("a"))
	c.Created("shop", servertest.Pod("b"))
	c.Must(limit("a"))
	want := `pods "b" is forbidden: exceeded quota: ends, requested: pods=1, used: pods=1, limited: pods=1`
	if err := limit("b"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	c.used("shop", "ends", map[corev1.ResourceName]string{"pods": "1"})
	ending := servertest.Pod("c")
	ending.Spec.ActiveDeadlineSeconds = new(int64(60))
	if err := c.Root().Resource(core.Pods, "shop").Create(t.Context(), ending, nil); err == nil {
		t.Error("a third pod that ends")
	}
}
