package hook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// atHome is the address of pods that run in this test.
func atHome(context.Context, *core.Pod) (string, error) { return "127.0.0.1", nil }

func TestHTTPGet(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another server was asked") }))
	defer elsewhere.Close()
	var asked []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.RequestURI)
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/end?now=1", http.StatusFound)
		case "/away":
			http.Redirect(w, r, strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1), http.StatusFound)
		case "/drain":
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				t.Error("the hook was over before its answer had ended")
			case <-time.After(100 * time.Millisecond): // of work
			}
		case "/missing":
			http.Error(w, strings.Repeat("gone ", 1000), http.StatusNotFound)
		}
		if !strings.HasPrefix(r.UserAgent(), "kube-lifecycle/1.") || r.Host != "example.test" && r.URL.Path != "/away" {
			t.Errorf("%s of %s by %s", r.URL, r.Host, r.UserAgent())
		}
	}))
	defer server.Close()
	c := &core.Container{Name: "main", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: portOf(t, server)}}}
	for _, tc := range []struct {
		path, port string
		want       []string
		fail       string
	}{
		{path: "end?now=1", port: "web", want: []string{"/end?now=1"}},
		{path: "/moved", port: "web", want: []string{"/moved", "/end?now=1"}},
		{path: "/drain", port: "web", want: []string{"/drain"}},
		{path: "/away", port: "web", want: []string{"/away"}},
		{path: "/missing", port: "web", want: []string{"/missing"}}, // upstream does not look at the status, either
		{path: "/", port: "none", fail: `httpGet hook: port "none" not found in container "main"`},
	} {
		asked = nil
		err := New(Options{Address: atHome}).Run(t.Context(), &core.Pod{}, c, runtimestate.ContainerID{}, &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: tc.path, Port: intstr.FromString(tc.port), Scheme: corev1.URISchemeHTTPS, HTTPHeaders: []corev1.HTTPHeader{{Name: "host", Value: "example.test"}},
		}})
		if (err == nil) != (tc.fail == "") || err != nil && err.Error() != tc.fail || !slices.Equal(asked, tc.want) {
			t.Errorf("%s asked for %q: %v, want %q, %s", tc.path, asked, err, tc.want, tc.fail)
		}
	}
}

func portOf(t *testing.T, server *httptest.Server) int32 {
	t.Helper()
	return int32(server.Listener.Addr().(*net.TCPAddr).Port)
}

// An HTTPS hook of a server without TLS is asked again without, and credentials are left out.
func TestHTTPSFallsBackToHTTP(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.RequestURI+" "+r.Header.Get("X-Y")+r.Header.Get("Authorization"))
	}))
	var fellBack []string
	r := New(Options{Address: atHome, FellBack: func(pod *core.Pod, host string) { fellBack = append(fellBack, pod.Name+" "+host) }})
	pod, hook := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{
		Path:        "/end",
		Scheme:      corev1.URISchemeHTTPS,
		Port:        intstr.FromInt32(portOf(t, server)),
		HTTPHeaders: []corev1.HTTPHeader{{Name: "X-Y", Value: "1"}, {Name: "authorization", Value: "Bearer secret"}},
	}}
	run := func() error { return r.Run(t.Context(), pod, &core.Container{}, runtimestate.ContainerID{}, hook) }
	if err := run(); err != nil || !slices.Equal(asked, []string{"/end 1"}) || !slices.Equal(fellBack, []string{"web " + server.Listener.Addr().String()}) {
		t.Errorf("asked for %q, fell back: %q, %v", asked, fellBack, err)
	}
	server.Close()
	if err := run(); err == nil || len(fellBack) != 1 {
		t.Errorf("of nobody: %v, fell back: %q", err, fellBack)
	}
}

// A pod without an address is not asked, unless the hook names a host.
func TestAPodWithoutAnAddress(t *testing.T) {
	none := errors.New("the pod has no address")
	r := New(Options{Address: func(context.Context, *core.Pod) (string, error) { return "", none }})
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	hook := &corev1.HTTPGetAction{Port: intstr.FromInt32(portOf(t, server))}
	run := func() error {
		return r.Run(t.Context(), &core.Pod{}, &core.Container{}, runtimestate.ContainerID{}, &corev1.LifecycleHandler{HTTPGet: hook})
	}
	if err := run(); !errors.Is(err, none) {
		t.Errorf("without a host: %v", err)
	}
	hook.Host = "127.0.0.1"
	if err := run(); err != nil {
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
		err := New(Options{Runtime: says(c.result)}).Run(t.Context(), &core.Pod{}, &core.Container{}, runtimestate.ContainerID{}, hook)
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestSleepEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, hook := New(Options{Clock: clock.RealClock{}}), &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 10}}
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
