package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
)

// firstSteps are verbs that begin with a request to the server.
var firstSteps = [][]string{
	{"get", "pods"}, {"get", "pod", "x", "-o", "yaml"}, {"describe", "pod", "x"}, {"run", "x", "--image=x"}, {"delete", "pod", "x"},
	{"logs", "x"}, {"trace", "pod/x"}, {"wait", "--for=condition=Ready", "pod/x"}, {"api-resources"}, {"auth", "whoami"},
}

// Servers that are half dead get --request-timeout, and the error says what
// they did.
func TestHalfDeadServers(t *testing.T) {
	const page = `<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>`
	dead := make(chan struct{}) // closed when the servers may end
	servers := map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"never answers": {func(http.ResponseWriter, *http.Request) { <-dead }, "Unable to connect to the server: context deadline exceeded (no answer in time)"},
		"stops within an answer": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"kind":"PodList","items":[`)
			_ = http.NewResponseController(w).Flush()
			<-dead
		}, "(the server stopped within its answer)"},
		"cuts answers short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"kind":"PodList","items":[`)
		}, "unexpected EOF (the connection was lost within the answer)"},
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "Unable to connect to the server: EOF"},
		"is a web server": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, page)
		}, "(is it a Kubernetes API server?)"},
		"is behind a broken proxy": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, page)
		}, "502 Bad Gateway"},
		"has no room": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"etcdserver: mvcc: database space exceeded"}`)
		}, "docs/troubleshooting.md says how to make room"},
		"says nothing": {func(http.ResponseWriter, *http.Request) {}, "(is it a Kubernetes API server?)"},
	}
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(server.answer)
			t.Cleanup(func() {
				if strings.Contains(server.want, "in time") || strings.Contains(server.want, "stopped") {
					s.CloseClientConnections()
					return // its handlers wait for the end of the test
				}
				s.Close()
			})
			for _, args := range firstSteps {
				timeout := "--request-timeout=1m"
				if server.want == servers["never answers"].want || server.want == servers["stops within an answer"].want {
					timeout = "--request-timeout=100ms"
				}
				kctl(t, s.URL, "", append([]string{timeout}, args...)...).want(t, 1, server.want)
			}
		})
	}
	close(dead)
}

// For a server with TLS that is addressed without it, the error names the right
// scheme.
func TestServerSpeaksTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	for _, args := range firstSteps {
		kctl(t, strings.Replace(s.URL, "https:", "http:", 1), "", args...).want(t, 1, "change it to https://")
	}
}

// heard is a standard error that reports writes.
type heard struct {
	word string
	once sync.Once
	mu   sync.Mutex
	text bytes.Buffer
	at   chan struct{}
}

func (h *heard) Write(text []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := h.text.Write(text)
	if strings.Contains(h.text.String(), h.word) {
		h.once.Do(func() { close(h.at) })
	}
	return n, err
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// noPatience is a clock whose timers have always fired.
type noPatience struct{ clock.RealClock }

func (noPatience) NewTimer(time.Duration) clock.Timer { return clock.RealClock{}.NewTimer(0) }

// getsWithoutPatience gets pods, the last arguments being flags, and has every silence told at once.
func getsWithoutPatience(t *testing.T, said *heard, host string, args ...string) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out bytes.Buffer
	c := frame.New(frame.Streams{In: strings.NewReader(""), Out: &out, Err: said}, noPatience{})
	code := run(context.Background(), c, append([]string{"--cache-dir", t.TempDir(), "--server", host, "-o", "name", "get", "pod"}, args...))
	want := ""
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			want += "pod/" + arg + "\n"
		}
	}
	if code != 0 || out.String() != want {
		t.Errorf("code %d, %q, %s", code, out.String(), said.String())
	}
}

// A user who waits without a limit sees what kctl waits for.
func TestSilenceIsSaid(t *testing.T) {
	said := &heard{word: "no answer yet from ", at: make(chan struct{})}
	host := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		<-said.at
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`)
	})
	getsWithoutPatience(t, said, host, "x")
}

// A user who waits because a server can't do what it is asked for sees why, and not that it is
// silent.
func TestWhyARequestIsMadeAgainIsSaid(t *testing.T) {
	said := &heard{word: ` has answered "etcd does not answer", and is asked again`, at: make(chan struct{})}
	var refused atomic.Bool
	host := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if !refused.Swap(true) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcd does not answer","reason":"ServiceUnavailable","code":503}`)
			return
		}
		<-said.at
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`)
	})
	getsWithoutPatience(t, said, host, "x")
}

// What another request was refused for is no reason for a silence.
func TestARefusalIsOfOneRequest(t *testing.T) {
	said := &heard{word: "pods/y: Ctrl-C", at: make(chan struct{})}
	var refused atomic.Bool
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		switch {
		case name == "x" && !refused.Swap(true):
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case name == "y":
			select {
			case <-said.at:
			case <-r.Context().Done():
			}
		}
		fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q}}`, name)
	})
	getsWithoutPatience(t, said, host, "x", "y", "--request-timeout=20s")
}

// Ctrl-C ends a run at every stage with 130, and says what is left behind.
func TestInterruptedRun(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":"default","uid":"u","resourceVersion":"1"},"spec":{%s"containers":[{"name":"x","image":"i"}]},"status":{%s}}`
	const onNode = `"nodeName":"n",`
	event := func(reason string) string {
		return `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","resourceVersion":"2"},"involvedObject":{"uid":"u"},"reason":"` +
			reason + `","message":"m"}}` + "\n"
	}
	state := func(s string) string {
		return `"phase":"Pending","containerStatuses":[{"name":"x","state":{` + s + `}}]`
	}
	for _, stage := range []struct{ name, spec, status, events, word, says string }{
		{"queued", "", `"phase":"Pending"`, "", "queued\n", "(scheduling)"},
		{"scheduled", onNode, `"phase":"Pending"`, "", "scheduled to n\n", "(scheduled to n, and the node prepares it)"},
		{"pulling", onNode, state(`"waiting":{"reason":"ContainerCreating"}`), event("Pulling"), "pulling i\n", "(pulling i)"},
		{"no image", onNode, state(`"waiting":{"reason":"ImagePullBackOff","message":"no such image"}`), "", "no such image\n", "no such image)"},
		{"pulled", onNode, state(`"waiting":{"reason":"ContainerCreating"}`), event("Pulled"), "image there: i\n", "(creating)"},
		{"created", onNode, state(`"waiting":{"reason":"ContainerCreating"}`), event("Created"), "created\n", "(starting)"},
		{"started", onNode, `"phase":"Running","containerStatuses":[{"name":"x","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]`, "", "started\n",
			"(getting ready)"},
	} {
		t.Run(stage.name, func(t *testing.T) {
			host := serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !r.URL.Query().Has("watch"):
					fmt.Fprintf(w, pod, stage.spec, stage.status)
					return
				case strings.HasSuffix(r.URL.Path, "/events"):
					fmt.Fprint(w, stage.events)
				}
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})
			interruptAt(t, host, stage.word, `Stopped waiting. Pod "x" is still there (`, stage.says, "kctl trace pod/x")
		})
	}
	t.Run("sent", func(t *testing.T) {
		host := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			// Only when everything was read does the server notice that the client goes.
			if _, err := io.Copy(io.Discard, r.Body); err == nil {
				<-r.Context().Done()
			}
		})
		interruptAt(t, host, "POST", "Stopped before the server answered", "kctl get pod x")
	})
}

// interruptAt runs kctl run until it has printed word, and interrupts it.
func interruptAt(t *testing.T, host, word string, wants ...string) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	said := &heard{word: word, at: make(chan struct{})}
	go func() { <-said.at; interrupt() }()
	args := []string{"--cache-dir", t.TempDir(), "--server", host, "run", "x", "--image=i"}
	if word == "POST" {
		args = append(args, "-v", "9") // shows the request before it is sent
	}
	code := run(ctx, frame.New(frame.Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: said}, clock.RealClock{}), args)
	if code != frame.ExitInterrupted {
		t.Errorf("exit code %d, want %d", code, frame.ExitInterrupted)
	}
	for _, want := range wants {
		if !strings.Contains(said.String(), want) {
			t.Errorf("standard error does not say %q:\n%s", want, said.String())
		}
	}
}

// Broken kubeconfigs are refused with what is wrong and where.
func TestBrokenKubeconfigs(t *testing.T) {
	const whole = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
	for _, c := range []struct{ name, text, want string }{
		{"no YAML", "clusters: [\n", "error loading config file"},
		{"binary", "\x00\x01\x02", "error loading config file"},
		{"a list", "- a\n- b\n", "(is it a kubeconfig?)"},
		{"other kind", "apiVersion: v1\nkind: Pod\n", "no kind"},
		{"no such context", strings.Replace(whole, "current-context: a", "current-context: b", 1),
			`error: context was not found for specified context: b ("kctl config get-contexts" lists those that there are)`},
		{"no context chosen", strings.Replace(whole, "current-context: a\n", "", 1),
			`error: the kubeconfig has no current context ("kctl config use-context a" chooses one`},
		{"no such cluster", whole, `context "a" is of cluster "a", which the kubeconfig does not have`},
		{"no authority",
			whole + "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1', certificate-authority: /not/there.crt}}]\nusers: [{name: a, user: {}}]\n",
			"/not/there.crt"},
		{"broken authority",
			whole + "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: aGFsbG8=}}]\nusers: [{name: a, user: {}}]\n",
			"certificate"},
		{"no base64", whole + "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: '%%%'}}]\nusers: [{name: a, user: {}}]\n",
			"base64"},
		{"certificate without key",
			whole + "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: a, user: {client-certificate-data: aGFsbG8=}}]\n", "key"},
		{"no token file", whole + "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: a, user: {tokenFile: /not/there}}]\n",
			"/not/there"},
		{"no such plugin",
			whole +
				"clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: " +
				"not-there-at-all, interactiveMode: Never}}}]\n", "not-there-at-all"},
		{"failing plugin",
			whole +
				"clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: " +
				"'false', interactiveMode: Never}}}]\n", "false"},
		{"babbling plugin",
			whole +
				"clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: " +
				"echo, args: [hello], interactiveMode: Never}}}]\n", "getting credentials"},
		{"no address", whole + "clusters: [{name: a, cluster: {server: ':::'}}]\nusers: [{name: a, user: {}}]\n", ":::"},
		{"odd scheme", whole + "clusters: [{name: a, cluster: {server: 'ftp://127.0.0.1'}}]\nusers: [{name: a, user: {}}]\n", "ftp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			kctl(t, "", "", "--kubeconfig", path, "get", "pods").want(t, 1, c.want)
		})
	}
	t.Run("directory", func(t *testing.T) {
		kctl(t, "", "", "--kubeconfig", t.TempDir(), "get", "pods").want(t, 1, "is a directory")
	})
}
