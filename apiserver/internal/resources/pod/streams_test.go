package pod

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/kubeletclient"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

// serve runs the pods' streams in front of a kubelet that answers by handler.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	backend := httptest.NewTLSServer(handler)
	t.Cleanup(backend.Close)
	address, port, err := net.SplitHostPort(backend.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	node := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	unreachable := node.DeepCopy()
	unreachable.Status.DaemonEndpoints.KubeletEndpoint.Port = 1

	on := func(node string, containers ...string) *core.Pod {
		p := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: core.PodSpec{NodeName: node}}
		for _, c := range containers {
			p.Spec.Containers = append(p.Spec.Containers, core.Container{Name: c})
		}
		return p
	}
	client, err := kubeletclient.New(kubeletclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	streams := NewStreams(
		registrytest.NewNamed(core.Pods, map[string]core.Object{
			"web": on("n1", "main"), "two": on("n1", "a", "b"), "new": on("", "main"), "lost": on("n2", "main"), "dark": on("n3", "main"),
		}),
		registrytest.NewNamed(core.Pods, map[string]core.Object{"n1": node, "n3": unreachable}), client)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // pod/subresource
		for _, sub := range []registry.Subresource{streams.Log(), streams.Exec(), streams.Attach(), streams.PortForward()} {
			if sub.Name != parts[1] {
				continue
			}
			if err := sub.Connect[r.Method](r.Context(), w, r, "default", parts[0]); err != nil {
				status := apierrors.APIStatus(nil)
				status, _ = err.(apierrors.APIStatus)
				http.Error(w, err.Error(), int(status.Status().Code))
			}
		}
	}))
	t.Cleanup(front.Close)
	return front.URL
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	return send(t, url, nil)
}

func send(t *testing.T, url string, header http.Header) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(text))
}

func TestLogs(t *testing.T) {
	front := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/b") {
			http.Error(w, "container b has not started", http.StatusBadRequest)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/a") {
			http.Error(w, "container a is gone", http.StatusNotFound)
			return
		}
		if r.URL.Query().Get("tailLines") == "7" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, "%s?%s", r.URL.Path, r.URL.RawQuery)
	})
	for _, c := range []struct {
		ask, want string
		code      int
	}{
		{"/two/log?container=a", "container a is gone", 404},
		{"/web/log?tailLines=7", "who are you?", 401},
		{"/web/log", "/containerLogs/default/web/main?", 200},
		{"/web/log?follow=true&tailLines=5&timestamps=1&sinceTime=2030-01-01T00:00:00Z",
			"/containerLogs/default/web/main?follow=true&sinceTime=2030-01-01T00%3A00%3A00Z&tailLines=5&timestamps=true", 200},
		{"/web/log?limitBytes=10", "/container", 200},
		{"/new/log", "", 204},
		{"/new/log?follow=maybe", "", 204},
		{"/two/log", "a container name must be specified for pod x, choose one of: [a b]", 400},
		{"/two/log?container=b", "container b has not started", 400},
		{"/web/log?container=c", "container c is not valid for pod x", 400},
		{"/web/log?tailLines=abc", `strconv.ParseInt: parsing "abc": invalid syntax`, 400},
		{"/web/log?sinceTime=abc&tailLines=-1", `parsing time "abc"`, 400},
		{"/web/log?tailLines=a&limitBytes=b&sinceSeconds=c&sinceTime=d", `parsing "c": invalid syntax`, 400},
		{"/web/log?tailLines=a&limitBytes=b&sinceTime=d", `parsing time "d"`, 400},
		{"/web/log?tailLines=-1", `PodLogOptions "web" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0`, 422},
		{"/web/log?sinceSeconds=1&sinceTime=2030-01-01T00:00:00Z", "at most one of `sinceTime` or `sinceSeconds` may be specified", 422},
		{"/web/log?tailLines=", `strconv.ParseInt: parsing "": invalid syntax`, 400},
		{"/web/log?sinceSeconds&limitBytes=1", `strconv.ParseInt: parsing "": invalid syntax`, 400},
		{"/new/log?limitBytes=", `strconv.ParseInt: parsing "": invalid syntax`, 400},
		{"/web/log?sinceTime=", "?sinceTime=0001-01-01T00%3A00%3A00Z", 200},
		{"/web/log?sinceTime=null", "?sinceTime=0001-01-01T00%3A00%3A00Z", 200},
		{"/web/log?sinceTime=&sinceSeconds=1", "at most one of `sinceTime` or `sinceSeconds` may be specified", 422},
		{"/web/log?sinceTime=2030-01-01T00:00:00Z&sinceSeconds=0", "is invalid: []: Forbidden: at most one of `sinceTime`", 422},
		{"/web/log?stream=Stdout", `PodLogOptions "web" is invalid: stream: Forbidden: may not be specified`, 422},
		{"/web/log?stream=", "stream: Forbidden: may not be specified", 422},
		{"/none/log", `pods "none" not found`, 404},
		{"/lost/log", `pods "n2" not found`, 404},
		{"/dark/log", "error dialing backend", 500},
	} {
		code, text := fetch(t, front+c.ask)
		if code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s\n want: %d %s", c.ask, code, text, c.code, c.want)
		}
	}
	if _, text := fetch(t, front+"/web/log?limitBytes=10"); len(text) != 10 {
		t.Errorf("ten bytes asked for, %q got", text)
	}
}

// TestLogsOverWebSocket uses the protocols that browsers can speak.
func TestLogsOverWebSocket(t *testing.T) {
	front := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a line") })
	for protocol, want := range map[string]string{"": "a line", "binary.k8s.io": "a line", "base64.binary.k8s.io": "YSBsaW5l"} {
		config, err := websocket.NewConfig("ws"+strings.TrimPrefix(front, "http")+"/web/log", front)
		if err != nil {
			t.Fatal(err)
		}
		if protocol != "" {
			config.Protocol = []string{protocol}
		}
		connection, err := config.DialContext(t.Context())
		if err != nil {
			t.Fatalf("%q: %v", protocol, err)
		}
		text := ""
		for err == nil {
			message := ""
			err = websocket.Message.Receive(connection, &message)
			text += message
		}
		if !errors.Is(err, io.EOF) || text != want {
			t.Errorf("%q: got %q, %v", protocol, text, err)
		}
		_ = connection.Close()
	}
}

// TestUpgrade sends bytes both ways through an upgraded connection.
func TestUpgrade(t *testing.T) {
	asked := make(chan *http.Request, 1)
	front := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		connection, buffer, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.Close()
		fmt.Fprint(buffer, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
		buffer.Flush()
		line, err := buffer.ReadString('\n')
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(buffer, "heard %s", line)
		buffer.Flush()
	})
	at, err := url.Parse(front)
	if err != nil {
		t.Fatal(err)
	}
	connection, err := net.Dial("tcp", at.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	fmt.Fprint(connection,
		"POST /web/exec?command=sh&command=-c&stdin=true&stdout=true&tty=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\nConnection: "+
			"Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n")
	reader := bufio.NewReader(connection)
	answer, err := http.ReadResponse(reader, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", answer, err)
	}
	fmt.Fprint(connection, "hello\n")
	if line, err := reader.ReadString('\n'); err != nil || line != "heard hello\n" {
		t.Errorf("came back: %q, %v", line, err)
	}
	r := <-asked
	if got, want := r.URL.RequestURI(), "/exec/default/web/main?command=sh&command=-c&input=1&output=1&tty=1"; got != want {
		t.Errorf("the kubelet was asked for %s, want %s", got, want)
	}
	if r.Header.Get("Authorization") != "" {
		t.Error("the user's token went on to the kubelet")
	}
}

// TestKubeletsAnswersToUpgrades: an answer that is neither an upgrade nor an
// error does not reach the client, which a redirect could lead anywhere.
func TestKubeletsAnswersToUpgrades(t *testing.T) {
	front := serve(t, func(w http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(r.URL.Query().Get("command") + r.URL.Query().Get("port"))
		if err != nil {
			code = http.StatusFound
		}
		w.Header().Set("Location", "https://elsewhere.test/")
		w.WriteHeader(code)
	})
	ways := map[string]http.Header{
		"SPDY":      {"Upgrade": {"SPDY/3.1"}},
		"WebSocket": {"Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {"v4.channel.k8s.io"}},
		"tunnel":    {"Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {"SPDY/3.1+portforward.k8s.io"}},
	}
	for _, c := range []struct {
		ask, want string
		code      int
	}{
		{"/web/exec?stdout=1&command=302", "invalid upgrade response: status code 302", 500},
		{"/web/exec?stdout=1&command=200", "invalid upgrade response: status code 200", 500},
		{"/web/exec?stdout=1&command=403", "", 403},
		{"/web/portforward?ports=307", "invalid upgrade response: status code 307", 500},
		{"/web/portforward?ports=404", "", 404},
		{"/web/log", `Get "https://elsewhere.test/": redirects forbidden`, 500},
		{"/dark/attach?stdout=true", "error dialing backend", 500},
	} {
		for way, header := range ways {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front+c.ask, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = header.Clone()
			r.Header.Set("Connection", "Upgrade")
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatalf("%s by %s: %v", c.ask, way, err)
			}
			text, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil || answer.StatusCode != c.code || !strings.Contains(string(text), c.want) || c.code == 500 && answer.Header.Get("Location") != "" {
				t.Errorf("%s by %s: %d %s %v\n want: %d %s", c.ask, way, answer.StatusCode, text, answer.Header, c.code, c.want)
			}
		}
	}
}

func TestStreamRefusals(t *testing.T) {
	front := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s?%s", r.URL.Path, r.URL.RawQuery)
	})
	for _, c := range []struct {
		ask, want string
		code      int
	}{
		{"/web/exec?stdout=true", "Upgrade request required", 400},
		{"/web/exec?command=sh", "Upgrade request required", 400},
		{"/web/exec?container=nope", "container nope is not valid for pod", 400},
		{"/new/exec", "pod new does not have a host assigned", 400},
		{"/none/exec", `pods "none" not found`, 404},
		{"/new/attach?stdout=true", "pod new does not have a host assigned", 400},
		{"/web/attach?stdout=true", "Upgrade request required", 400},
		{"/web/portforward?ports=80&ports=81", "Upgrade request required", 400},
	} {
		code, text := fetch(t, front+c.ask)
		if code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s\n want: %d %s", c.ask, code, text, c.code, c.want)
		}
	}
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}}
	for ask, want := range map[string]string{
		"/web/exec?stdout=true": "you must specify at least one command for the container",
		"/web/exec?command=sh":  "you must specify at least 1 of stdin, stdout, stderr",
		"/web/attach?stdin=0":   "you must specify at least 1 of stdin, stdout, stderr",
	} {
		if code, text := send(t, front+ask, upgrade); code != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s\n want: %s", ask, code, text, want)
		}
	}
}

// TestStreamsAreNamedAsClientsSpellThem: a stream is wanted if it is named and
// not denied; Python's client writes True and False.
func TestStreamsAreNamedAsClientsSpellThem(t *testing.T) {
	asked := make(chan string, 1)
	front := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.RawQuery
		http.Error(w, "no", http.StatusForbidden)
	})
	for query, want := range map[string]string{
		"stdin=False&stdout=True&stderr=True&tty=False": "error=1&output=1",
		"stdin=TRUE&stdout=yes&stderr=0&tty":            "input=1&output=1&tty=1",
		"stdin=f&stdout=false&tty=":                     "input=1&tty=1",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front+"/web/attach?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "SPDY/3.1")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", query, answer.Status)
			continue
		}
		if got := <-asked; got != want {
			t.Errorf("%s: the kubelet was asked for %s, want %s", query, got, want)
		}
	}
}
