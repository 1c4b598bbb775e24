package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kctl/kubelet/internal/cri"
	"kctl/proto/core"
)

// commands answers ExecSync by the command's first word.
type commands struct{}

func (commands) ExecSync(_ context.Context, _ string, command []string, _ time.Duration) (cri.ExecResult, error) {
	switch command[0] {
	case "true":
		return cri.ExecResult{Stdout: []byte("out"), Stderr: []byte("err")}, nil
	case "false":
		return cri.ExecResult{ExitCode: 1, Stderr: []byte("bad")}, nil
	case "loud":
		return cri.ExecResult{Stdout: make([]byte, 2*maxOutput)}, nil
	case "slow":
		return cri.ExecResult{}, fmt.Errorf("exec: %w", context.DeadlineExceeded)
	}
	return cri.ExecResult{}, errors.New("no such container")
}

func ask(t *testing.T, probe corev1.Probe, change ...func(*Target)) (Answer, error) {
	t.Helper()
	target := Target{Pod: &core.Pod{}, Container: &core.Container{Name: "c"}, IP: "127.0.0.1", Probe: withDefaults(&probe)}
	for _, f := range change {
		f(&target)
	}
	return NewProber(commands{}, func() string { return "127.0.0.1" }).Probe(t.Context(), target)
}

func expectAnswer(t *testing.T, name string, a Answer, err error, verdict Result, output string) {
	t.Helper()
	if err != nil || a.Result != verdict || !strings.Contains(a.Output, output) {
		t.Errorf("%s: %+v, %v; want %v, %q", name, a, err, verdict, output)
	}
}

func TestExec(t *testing.T) {
	exec := func(command string) (Answer, error) {
		return ask(t, corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{command}}}})
	}
	a, err := exec("true")
	expectAnswer(t, "true", a, err, Success, "outerr")
	a, err = exec("false")
	expectAnswer(t, "false", a, err, Failure, "bad")
	a, err = exec("slow")
	expectAnswer(t, "slow", a, err, Failure, `command timed out: "slow" timed out after 1s`)
	a, err = exec("loud")
	if err != nil || len(a.Output) != maxOutput {
		t.Errorf("loud: %d bytes, %v", len(a.Output), err)
	}
	if _, err = exec("gone"); err == nil {
		t.Error("a runtime's error is no error")
	}
	if _, err := ask(t, corev1.Probe{}); err == nil {
		t.Error("a probe that asks nothing is no error")
	}
}

func portOf(t *testing.T, address string) intstr.IntOrString {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(strings.TrimPrefix(address, "http://"), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	return intstr.Parse(port)
}

func TestHTTPGet(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s host=%s agent=%s accept=%s q=%s x=%v", r.Proto, r.Host, r.UserAgent(), r.Header.Get("Accept"), r.URL.RawQuery, r.Header["X-Y"])
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusFound) })
	mux.HandleFunc("/there", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://example.invalid/", http.StatusFound)
	})
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 128<<10)) })
	mux.HandleFunc("/loud", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, io.LimitReader(zeros{}, 10*maxOutput)) })
	plain, secure := httptest.NewServer(mux), httptest.NewUnstartedServer(mux)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	port := portOf(t, plain.URL)
	get := func(action corev1.HTTPGetAction, change ...func(*Target)) (Answer, error) {
		if action.Port == (intstr.IntOrString{}) {
			action.Port = port
		}
		return ask(t, corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &action}}, change...)
	}
	for _, c := range []struct {
		name    string
		action  corev1.HTTPGetAction
		verdict Result
		output  string
	}{
		{"ok", corev1.HTTPGetAction{Path: "/ok?a=b"}, Success, "agent=kube-probe/1."},
		{"accept", corev1.HTTPGetAction{Path: "/ok?a=b"}, Success, "accept=*/* q=a=b"},
		{"without a slash", corev1.HTTPGetAction{Path: "ok"}, Success, "host=127.0.0.1"},
		{"headers", corev1.HTTPGetAction{Path: "/ok", HTTPHeaders: []corev1.HTTPHeader{
			{Name: "Host", Value: "example.com"}, {Name: "X-Y", Value: "1"}, {Name: "x-y", Value: "2"}, {Name: "User-Agent", Value: "mine"}, {Name: "Accept", Value: ""},
		}}, Success, "host=example.com agent=mine accept= q= x=[1 2]"},
		{"TLS", corev1.HTTPGetAction{Path: "/ok", Scheme: corev1.URISchemeHTTPS, Port: portOf(t, secure.URL)}, Success, "HTTP/2.0 host="},
		{"explicit host", corev1.HTTPGetAction{Path: "/ok", Host: "localhost"}, Success, "host=localhost"},
		{"broken", corev1.HTTPGetAction{Path: "/broken"}, Failure, "HTTP probe failed with statuscode: 503"},
		{"none", corev1.HTTPGetAction{Path: "/none"}, Failure, "statuscode: 404"},
		{"redirect", corev1.HTTPGetAction{Path: "/here"}, Success, "host="},
		{"redirect elsewhere", corev1.HTTPGetAction{Path: "/there"}, Warning, "Probe terminated redirects, Response body: "},
		{"redirect round and round", corev1.HTTPGetAction{Path: "/round"}, Failure, "stopped after 10 redirects"},
		{"slow", corev1.HTTPGetAction{Path: "/slow"}, Failure, "deadline exceeded"},
		{"plain on TLS", corev1.HTTPGetAction{Path: "/ok", Port: portOf(t, secure.URL)}, Failure, "400"},
		{"long headers", corev1.HTTPGetAction{Path: "/long"}, Failure, "headers exceeded 65536 bytes"},
		{"nobody there", corev1.HTTPGetAction{Path: "/ok", Port: intstr.FromInt32(1)}, Failure, "connection refused"},
	} {
		a, err := get(c.action)
		expectAnswer(t, c.name, a, err, c.verdict, c.output)
	}
	a, err := get(corev1.HTTPGetAction{Path: "/loud"})
	if err != nil || len(a.Output) != maxOutput {
		t.Errorf("loud: %d bytes, %v", len(a.Output), err)
	}
	a, err = get(corev1.HTTPGetAction{Path: "/ok", Port: intstr.FromString("web")}, func(t *Target) {
		t.Container.Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: int32(port.IntValue())}}
	})
	expectAnswer(t, "named port", a, err, Success, "host=")
	a, err = get(corev1.HTTPGetAction{Path: "/ok"}, func(t *Target) { t.IP = ""; t.Pod.Spec.HostNetwork = true })
	expectAnswer(t, "host network", a, err, Success, "host=127.0.0.1")
	for name, change := range map[string]func(*Target){
		"no address":      func(t *Target) { t.IP = "" },
		"no such port":    func(t *Target) { t.Probe.HTTPGet.Port = intstr.FromString("web") },
		"port too large":  func(t *Target) { t.Probe.HTTPGet.Port = intstr.FromInt32(70000) },
		"impossible name": func(t *Target) { t.Probe.HTTPGet.Host = "a b" },
	} {
		if a, err := get(corev1.HTTPGetAction{Path: "/ok"}, change); err == nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// longWinded answers with more than a health service has to say.
type longWinded struct {
	grpc_health_v1.UnimplementedHealthServer
}

func (longWinded) Check(_ context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	long := strings.Repeat("x", 2*maxMessage)
	if r.GetService() == "headers" {
		return nil, status.Error(codes.Internal, long)
	}
	answer := &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}
	answer.ProtoReflect().SetUnknown(append([]byte{100<<3&0x7f | 0x80 | 2, 100 >> 4, 0x80, 0x80, 8}, long...)) // field 100, of 128 KiB
	return answer, nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestTCPSocket(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	probe := corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: portOf(t, listener.Addr().String())}}}
	a, err := ask(t, probe)
	expectAnswer(t, "open", a, err, Success, "")
	_ = listener.Close()
	a, err = ask(t, probe)
	expectAnswer(t, "closed", a, err, Failure, "connection refused")
}

func TestGRPC(t *testing.T) {
	serve := func(register func(*grpc.Server)) int32 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		register(server)
		done := make(chan error, 1)
		go func() { done <- server.Serve(listener) }()
		t.Cleanup(func() {
			server.Stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		return int32(listener.Addr().(*net.TCPAddr).Port)
	}
	checks := health.NewServer()
	checks.SetServingStatus("up", grpc_health_v1.HealthCheckResponse_SERVING)
	checks.SetServingStatus("down", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	healthy := serve(func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, checks) })
	without := serve(func(*grpc.Server) {})
	talkative := serve(func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, longWinded{}) })
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	service := func(s string) *string { return &s }
	for _, c := range []struct {
		name    string
		action  corev1.GRPCAction
		verdict Result
		output  string
	}{
		{"whole server", corev1.GRPCAction{Port: healthy}, Success, ""},
		{"up", corev1.GRPCAction{Port: healthy, Service: service("up")}, Success, ""},
		{"down", corev1.GRPCAction{Port: healthy, Service: service("down")}, Failure, `service unhealthy (responded with "NOT_SERVING")`},
		{"unknown", corev1.GRPCAction{Port: healthy, Service: service("unknown")}, Failure, "unknown service"},
		{"no health service", corev1.GRPCAction{Port: without}, Failure, "does not implement the grpc health protocol"},
		{"nobody there", corev1.GRPCAction{Port: 1}, Failure, "failed to connect service at"},
		{"long message", corev1.GRPCAction{Port: talkative, Service: service("message")}, Failure, "larger than max"},
		{"long headers", corev1.GRPCAction{Port: talkative, Service: service("headers")}, Failure, "RST_STREAM"},
		{"silent", corev1.GRPCAction{Port: int32(silent.Addr().(*net.TCPAddr).Port)}, Failure, "within 1s"},
	} {
		a, err := ask(t, corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &c.action}})
		expectAnswer(t, c.name, a, err, c.verdict, c.output)
	}
}
