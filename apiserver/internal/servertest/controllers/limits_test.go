package controllers

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/resources/limitrange"
	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
	"kctl/proto/rest"
)

func limits(name string, item corev1.LimitRangeItem) *corev1.LimitRange {
	return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}
}

func amounts(cpu string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
}

// TestLimitRange: once its create has been answered, a range applies to the
// very next pod.
func TestLimitRange(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.AwaitServiceAccount("default")
	pods := c.Root().Resource(core.Pods, "default")
	c.Created("default", servertest.Pod("free"))
	ranges := c.Root().Resource(limitrange.Resource, "default")
	made := &corev1.LimitRange{}
	c.Must(ranges.Create(t.Context(), limits("r", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: amounts("2"), Min: amounts("100m")}), made))
	if got := made.Spec.Limits[0].Default[corev1.ResourceCPU]; got.String() != "2" {
		t.Errorf("the default is %v", made.Spec.Limits[0].Default)
	}
	next := c.Created("default", servertest.Pod("next"))
	if r := next.Spec.Containers[0].Resources; r.Limits.Cpu().String() != "2" || r.Requests.Cpu().String() != "2" ||
		next.Status.QOSClass != corev1.PodQOSBurstable {
		t.Errorf("resources are %+v, class %s", r, next.Status.QOSClass)
	}
	greedy := servertest.Pod("greedy")
	greedy.Spec.Containers[0].Resources.Limits = amounts("3")
	err := pods.Create(t.Context(), greedy, nil)
	if !apierrors.IsForbidden(err) || err.Error() != `pods "greedy" is forbidden: maximum cpu usage per Container is 2, but limit is 3` {
		t.Errorf("a greedy pod: %v", err)
	}
	bigger := next.DeepCopy()
	bigger.Spec.Containers[0].Resources.Limits, bigger.Spec.Containers[0].Resources.Requests = amounts("3"), amounts("3")
	err = pods.Update(t.Context(), next.Name, bigger, nil, rest.Sub("resize"))
	if !apierrors.IsForbidden(err) {
		t.Errorf("a greedy resize: %v", err)
	}
	c.Must(ranges.Delete(t.Context(), "r", nil, nil))
}

// TestPodSecurity: a namespace's labels apply, and a change of them warns about
// existing pods.
func TestPodSecurity(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.AwaitServiceAccount("default")
	privileged := func(name string) *core.Pod {
		p := servertest.Pod(name)
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		return p
	}
	c.Created("default", privileged("before"))
	enforce := func(ctx context.Context, query string) []string {
		request, err := http.NewRequestWithContext(ctx, http.MethodPatch, c.Address+"/api/v1/namespaces/default"+query,
			strings.NewReader(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"baseline"}}}`))
		c.Must(err)
		request.Header.Set("Content-Type", "application/merge-patch+json")
		answer, err := c.Root().HTTP().Do(request)
		c.Must(err)
		c.Must(answer.Body.Close())
		return answer.Header.Values("Warning")
	}
	want := []string{
		`299 - "existing pods in namespace \"default\" violate the new PodSecurity enforce level \"baseline:latest\""`,
		`299 - "before: privileged"`,
	}
	// By a dry run, because the pod may not have been seen yet.
	c.Until("who would set the label is warned", func(ctx context.Context) bool { return slices.Equal(enforce(ctx, "?dryRun=All"), want) })
	if got := enforce(t.Context(), ""); !slices.Equal(got, want) {
		t.Errorf("warnings are %q", got)
	}
	c.Until("a privileged pod is refused", func(ctx context.Context) bool {
		// By a dry run, because the label may not have been seen yet.
		err := c.Root().Resource(core.Pods, "default").Create(ctx, privileged("after"), nil, rest.Query("dryRun", "All"))
		const refusal = `pods "after" is forbidden: violates PodSecurity "baseline:latest": privileged (container "c" must not set securityContext.privileged=true)`
		return apierrors.IsForbidden(err) && err.Error() == refusal
	})
}
