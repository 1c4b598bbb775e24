package daemon_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/rest"
)

func TestRequestsAreMeasured(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch {
		case strings.HasSuffix(r.URL.Path, "/gone"):
			w.WriteHeader(http.StatusNotFound)
		case asked == 1:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			_, _ = w.Write([]byte(`{"metadata":{"name":"p"}}`))
		}
	}))
	defer server.Close()
	requests := daemon.NewRequests()
	client, err := rest.New(&rest.Config{Host: server.URL, Meter: requests})
	if err != nil {
		t.Fatal(err)
	}
	pods := client.Resource(core.Pods, "a")
	if err := pods.Get(t.Context(), "p", &core.Pod{}); err != nil {
		t.Fatal(err)
	}
	if err := pods.Get(t.Context(), "gone", &core.Pod{}); err == nil {
		t.Error("found what is not there")
	}
	if err := pods.Create(t.Context(), &core.Pod{}, nil); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pods.Delete(ended, "p", nil, nil); err == nil {
		t.Error("a request that was given up succeeded")
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(requests)
	w := httptest.NewRecorder()
	daemon.Endpoints(daemon.NewHealth(), registry).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	host := strings.TrimPrefix(server.URL, "http://")
	for _, want := range []string{
		`rest_client_requests_total{code="200",host="HOST",method="GET"} 1`,
		`rest_client_requests_total{code="429",host="HOST",method="GET"} 1`,
		`rest_client_requests_total{code="404",host="HOST",method="GET"} 1`,
		`rest_client_requests_total{code="200",host="HOST",method="POST"} 1`,
		`rest_client_requests_total{code="<error>",host="HOST",method="DELETE"} 1`,
		`rest_client_request_retries_total{code="429",host="HOST",verb="GET"} 1`,
		`rest_client_request_duration_seconds_count{host="HOST",verb="GET"} 2`,
		`rest_client_request_duration_seconds_count{host="HOST",verb="POST"} 1`,
		`rest_client_request_duration_seconds_bucket{host="HOST",verb="POST",le="60"} 1`,
		`rest_client_request_size_bytes_bucket{host="HOST",verb="POST",le="64"} 1`,
		`rest_client_response_size_bytes_sum{host="HOST",verb="GET"} 25`,
	} {
		if want = strings.ReplaceAll(want, "HOST", host); !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, w.Body)
		}
	}
}
