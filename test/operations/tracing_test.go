package operations_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/proto/tracing/tracingtest"
	"kctl/test/harness"
)

// A trace collector receives spans for a pod's create, with all that the API
// server did for it, and for its sync, with the kubelet's calls to the runtime
// and to the API server.
func TestAPodsWayInSpans(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t)
	dir := t.TempDir()
	settings := "endpoint: " + collector.Endpoint + "\nsamplingRatePerMillion: 1000000\n"
	for name, content := range map[string]string{
		"apiserver.yaml": "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n" + settings,
		"kubelet.yaml": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ntracing:\n  " +
			strings.ReplaceAll(strings.TrimSpace(settings), "\n", "\n  "),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := harness.Start(t, harness.Options{Flags: []string{
		"--apiserver-flags=--tracing-config-file=" + filepath.Join(dir, "apiserver.yaml"), "--kubelet-flags=--config=" + filepath.Join(dir, "kubelet.yaml"),
	}})
	c.Create(harness.Pod("traced", harness.Demo, "sleep", "infinity"))
	pod := c.AwaitRunning("traced")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	span := func(service, name string, so func(tracingtest.Span) bool) tracingtest.Span {
		return collector.Await(ctx, t, service+"'s "+name, func(s tracingtest.Span) bool { return s.Service == service && s.Name == name && so(s) })
	}
	stored := span("apiserver", "Create etcd3", func(s tracingtest.Span) bool { return s.Attribute("key") == "/registry/pods/default/traced" })
	span("apiserver", "POST /api/v1/namespaces/{:namespace}/pods", func(s tracingtest.Span) bool { return stored.Within(s) })
	sandbox := span("kubelet", "runtime.v1.RuntimeService/RunPodSandbox", func(s tracingtest.Span) bool {
		return slices.ContainsFunc(collector.Spans(), func(sync tracingtest.Span) bool {
			return sync.Name == "syncPod" && sync.Attribute("k8s.pod.uid") == string(pod.UID) && s.Within(sync)
		})
	})
	for _, step := range []string{"volumes", "runtime.v1.RuntimeService/CreateContainer", "runtime.v1.RuntimeService/StartContainer"} {
		span("kubelet", step, func(s tracingtest.Span) bool { return slices.Equal(s.TraceId, sandbox.TraceId) })
	}
	// The API server only links to the caller's trace, and starts one of its own.
	span("apiserver", "POST /api/v1/namespaces/{:namespace}/serviceaccounts/{:name}/token", func(s tracingtest.Span) bool {
		return len(s.Links) == 1 && slices.Equal(s.Links[0].TraceId, sandbox.TraceId) && !slices.Equal(s.TraceId, sandbox.TraceId)
	})
}
