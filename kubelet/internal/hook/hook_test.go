package hook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// atHome is the address of pods that run in this test.
func atHome(context.Context, *core.Pod) (string, error) { return "127.0.0.1", nil }

// A hook asks the pod itself, over TLS without looking at its certificate, and follows
// nobody anywhere.
func TestHTTPGet(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another server was asked") }))
	defer elsewhere.Close()
	asked := make(chan *http.Request, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		case "/missing":
			http.Error(w, strings.Repeat("gone ", 1000), http.StatusNotFound)
		}
	}))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	c := &core.Container{Name: "main", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: int32(port)}}}
	get := func(path string, port intstr.IntOrString) error {
		return New(nil, atHome, clock.RealClock{}).Run(t.Context(), &core.Pod{}, c, runtimestate.ContainerID{}, &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: port, Scheme: corev1.URISchemeHTTPS,
			HTTPHeaders: []corev1.HTTPHeader{{Name: "host", Value: "example.test"}, {Name: "X-Way", Value: "down"}},
		}})
	}
	for _, port := range []intstr.IntOrString{intstr.FromInt(port), intstr.FromString("web"), intstr.FromString(at.Port())} {
		if err := get("end?now=1", port); err != nil {
			t.Fatal(err)
		}
		r := <-asked
		if r.URL.String() != "/end?now=1" || r.Host != "example.test" || r.Header.Get("X-Way") != "down" || !strings.HasPrefix(r.UserAgent(), "kube-lifecycle/") {
			t.Errorf("%s of %s by %s, %v", r.URL, r.Host, r.UserAgent(), r.Header)
		}
	}
	if err := get("/moved", intstr.FromString("web")); err != nil {
		t.Errorf("a redirect: %v", err)
	}
	<-asked
	if err := get("/missing", intstr.FromString("web")); err == nil || !strings.Contains(err.Error(), "/missing answered 404") || len(err.Error()) > 2*maxOutput {
		t.Errorf("what is not there: %v", err)
	}
	<-asked
	if err := get("/", intstr.FromString("none")); err == nil || !strings.Contains(err.Error(), `container main has no port "none"`) {
		t.Errorf("a port that is not there: %v", err)
	}
}

// A pod without an address is not asked, unless the hook names a host.
func TestAPodWithoutAnAddress(t *testing.T) {
	none := errors.New("the pod has no address")
	r := New(nil, func(context.Context, *core.Pod) (string, error) { return "", none }, clock.RealClock{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler()}
	go server.Serve(listener) //nolint:errcheck // ends with Close
	defer server.Close()
	hook := &corev1.HTTPGetAction{Port: intstr.FromInt(listener.Addr().(*net.TCPAddr).Port)}
	run := func() error {
		return r.Run(t.Context(), &core.Pod{}, &core.Container{}, runtimestate.ContainerID{}, &corev1.LifecycleHandler{HTTPGet: hook})
	}
	if err := run(); !errors.Is(err, none) {
		t.Errorf("without a host: %v", err)
	}
	hook.Host = "127.0.0.1"
	if err := run(); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("with a host: %v", err)
	}
}

// says is a runtime whose commands end like this.
type says cri.ExecResult

func (s says) ExecSync(context.Context, string, []string, time.Duration) (cri.ExecResult, error) {
	return cri.ExecResult(s), nil
}

func TestExec(t *testing.T) {
	hook := &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/end"}}}
	for _, c := range []struct {
		result cri.ExecResult
		want   string
	}{
		{cri.ExecResult{Stdout: []byte("fine")}, ""},
		{cri.ExecResult{ExitCode: 7, Stdout: []byte("no "), Stderr: []byte("good")}, `exec hook ["/end"] exited with 7: no good`},
		{cri.ExecResult{ExitCode: 1, Stdout: make([]byte, 2*maxOutput)}, `exec hook ["/end"] exited with 1: ` + string(make([]byte, maxOutput))},
	} {
		err := New(says(c.result), atHome, clock.RealClock{}).Run(t.Context(), &core.Pod{}, &core.Container{}, runtimestate.ContainerID{}, hook)
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestSleepEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, hook := New(nil, atHome, clock.RealClock{}), &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 10}}
		start := time.Now()
		if err := r.Run(t.Context(), &core.Pod{}, &core.Container{}, runtimestate.ContainerID{}, hook); err != nil || time.Since(start) != 10*time.Second {
			t.Errorf("slept for %v: %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Run(ctx, &core.Pod{}, &core.Container{}, runtimestate.ContainerID{}, hook); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cut short: %v", err)
		}
	})
}
