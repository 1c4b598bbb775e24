package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kctl/kubelet/internal/podworker"
)

// Quantiles over the kubelets of a cluster, some of which are upstream's, need the
// same buckets everywhere. These are kubelet 1.37's, as it serves them.
func TestBucketsAreUpstreams(t *testing.T) {
	usual := ".005 .01 .025 .05 .1 .25 .5 1 2.5 5 10"
	want := map[string]string{
		"kubelet_pod_worker_duration_seconds":             usual,
		"kubelet_pod_worker_start_duration_seconds":       usual,
		"kubelet_pleg_relist_duration_seconds":            usual,
		"kubelet_pleg_relist_interval_seconds":            usual,
		"kubelet_evented_pleg_connection_latency_seconds": usual,
		"kubelet_runtime_operations_duration_seconds": ".005 .0125 .03125 .078125 .1953125 .48828125 1.220703125 3.0517578125 " +
			"7.62939453125 19.073486328125 47.6837158203125 119.20928955078125 298.0232238769531 745.0580596923828",
	}
	registry := prometheus.NewRegistry()
	m := New(registry)
	m.ObserveWork(podworker.Job{}, time.Second)
	m.ObserveRuntime("Status", time.Second, nil)
	for name, got := range buckets(t, registry) {
		if of, ok := want[name]; ok && strings.Join(got, " ") != strings.ReplaceAll(" "+of, " .", " 0.")[1:] {
			t.Errorf("%s: %q, want %q", name, got, of)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

func buckets(t *testing.T, registry *prometheus.Registry) map[string][]string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, family := range families {
		for _, bucket := range family.GetMetric()[0].GetHistogram().GetBucket() {
			all[family.GetName()] = append(all[family.GetName()], fmt.Sprint(bucket.GetUpperBound()))
		}
	}
	return all
}

// Calls of the runtime have upstream's names, also those that are not simply their
// method's in other letters.
func TestRuntimeOperationsHaveUpstreamsNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	for _, method := range []string{"RuntimeConfig", "UpdateContainerResources", "ReopenContainerLog", "RunPodSandbox", "ListPodSandboxStats"} {
		m.ObserveRuntime(method, time.Second, nil)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, family := range families {
		if family.GetName() == "kubelet_runtime_operations_total" {
			for _, one := range family.GetMetric() {
				names = append(names, one.GetLabel()[0].GetValue())
			}
		}
	}
	if want := []string{"list_podsandbox_stats", "reopen_container_log", "run_podsandbox", "runtime_config", "update_container"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// A runtime that does not report its configuration, like containerd 1.6, will be too old for upstream's kubelet.
func TestRuntimesThatUpstreamWillNotSupport(t *testing.T) {
	for code, want := range map[codes.Code][]string{codes.OK: nil, codes.Unavailable: nil, codes.Unimplemented: {"1.38.0"}} {
		registry := prometheus.NewRegistry()
		m := New(registry)
		m.ObserveRuntime("UpdateRuntimeConfig", time.Second, status.Error(codes.Unimplemented, ""))
		m.ObserveRuntime("RuntimeConfig", time.Second, status.Error(code, ""))
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, family := range families {
			if family.GetName() == "kubelet_cri_losing_support" {
				for _, one := range family.GetMetric() {
					got = append(got, one.GetLabel()[0].GetValue())
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", code, got, want)
		}
	}
}
