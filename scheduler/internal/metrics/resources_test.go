package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/internal/fixture"
)

// The metrics of kube-scheduler v1.37.0 for the same pods.
func TestResources(t *testing.T) {
	waits := fixture.Pod("rsrc", fixture.Priority(0), fixture.Requests("cpu", "100m", "memory", "64Mi", "example.com/gpu", "1", "ephemeral-storage", "1Gi"))
	waits.Spec.Containers[0].Resources.Limits = fixture.List("cpu", "1", "example.com/gpu", "1")
	waits.Spec.InitContainers = []core.Container{{Name: "i", Resources: corev1.ResourceRequirements{Requests: fixture.List("cpu", "1500m")}}}
	bound := fixture.Pod("bound", fixture.Priority(0), fixture.On("nowhere"), fixture.Requests("cpu", "1500m", "hugepages-2Mi", "4Mi", "memory", "1Gi"))
	bound.Spec.Containers[0].Resources.Limits = fixture.List("memory", "1Gi", "hugepages-2Mi", "4Mi")
	pods := []*core.Pod{waits, bound, fixture.Pod("nothing")}
	want := `
# HELP kube_pod_resource_limit What a pod may use of a resource, as the scheduler counts it.
# TYPE kube_pod_resource_limit gauge
kube_pod_resource_limit{namespace="default",node="",pod="rsrc",priority="0",resource="cpu",scheduler="default-scheduler",unit="cores"} 1
kube_pod_resource_limit{namespace="default",node="",pod="rsrc",priority="0",resource="example.com/gpu",scheduler="default-scheduler",unit=""} 1
kube_pod_resource_limit{namespace="default",node="nowhere",pod="bound",priority="0",resource="hugepages-2Mi",scheduler="default-scheduler",unit="bytes"} 4.194304e+06
kube_pod_resource_limit{namespace="default",node="nowhere",pod="bound",priority="0",resource="memory",scheduler="default-scheduler",unit="bytes"} 1.073741824e+09
# HELP kube_pod_resource_request What a pod asks for of a resource, as the scheduler counts it.
# TYPE kube_pod_resource_request gauge
kube_pod_resource_request{namespace="default",node="",pod="rsrc",priority="0",resource="cpu",scheduler="default-scheduler",unit="cores"} 1.5
kube_pod_resource_request{namespace="default",node="",pod="rsrc",priority="0",resource="ephemeral-storage",scheduler="default-scheduler",unit="bytes"} 1.073741824e+09
kube_pod_resource_request{namespace="default",node="",pod="rsrc",priority="0",resource="example.com/gpu",scheduler="default-scheduler",unit=""} 1
kube_pod_resource_request{namespace="default",node="",pod="rsrc",priority="0",resource="memory",scheduler="default-scheduler",unit="bytes"} 6.7108864e+07
kube_pod_resource_request{namespace="default",node="nowhere",pod="bound",priority="0",resource="cpu",scheduler="default-scheduler",unit="cores"} 1.5
kube_pod_resource_request{namespace="default",node="nowhere",pod="bound",priority="0",resource="hugepages-2Mi",scheduler="default-scheduler",unit="bytes"} 4.194304e+06
kube_pod_resource_request{namespace="default",node="nowhere",pod="bound",priority="0",resource="memory",scheduler="default-scheduler",unit="bytes"} 1.073741824e+09
`
	registry := prometheus.NewRegistry()
	registry.MustRegister(Resources{Pods: func() []*core.Pod { return pods }})
	told := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(told, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if got := told.Body.String(); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("told\n%s\nwant%s", got, want)
	}
}
