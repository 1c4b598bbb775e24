package proxy

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/kubeletclient"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
	"kctl/proto/rest"
)

func port(t *testing.T, server *httptest.Server) int32 {
	t.Helper()
	_, text, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(number)
}

// serve runs the proxies in front of a plain server, which is the pod "web" and
// services, and of the same server with TLS, which is the kubelet of node "n1".
// All are on loopback, which is allowed unless strict.
func serve(t *testing.T, strict bool, handler http.HandlerFunc) (server *httptest.Server, plain, secure int32) {
	t.Helper()
	http1, https := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(http1.Close)
	t.Cleanup(https.Close)
	plain, secure = port(t, http1), port(t, https)
	pod := &core.Pod{Status: core.PodStatus{PodIP: "127.0.0.1"}, Spec: core.PodSpec{Containers: []core.Container{
		{Name: "side"}, {Name: "main", Ports: []corev1.ContainerPort{{ContainerPort: plain}}},
	}}}
	node := &core.Node{Status: corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: secure}},
	}}
	slice := func(service string, number int32, name *string, ready *bool) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"127.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}},
			Ports:      []discoveryv1.EndpointPort{{Name: name, Port: new(number)}},
		}
	}
	kubelets, err := kubeletclient.New(kubeletclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kubelets.Close)
	p := New(Sources{
		Pods:  registrytest.NewNamed(core.Pods, map[string]core.Object{"web": pod, "new": &core.Pod{}}),
		Nodes: registrytest.NewNamed(core.Nodes, map[string]core.Object{"n1": node}),
		Services: registrytest.NewNamed(core.Services, map[string]core.Object{"named": &corev1.Service{Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{{Port: 80, Name: "web"}, {Port: 81, Name: "other"}},
		}}}),
		EndpointSlices: registrytest.NewNamed(core.EndpointSlices, map[string]core.Object{
			"a": slice("named", plain, new("web"), nil), "b": slice("named", 1, new("web"), new(false)),
			"c": slice("plain", plain, new(""), new(true)),
		}),
		Kubelets: kubelets,
	})
	if !strict {
		p.checkIP = func(net.IP) error { return nil }
	}
	return front(t, p), plain, secure
}

// front serves the proxies under the requests' paths.
func front(t *testing.T, p *Proxies) *httptest.Server {
	t.Helper()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(r.URL.Path, "/")
		sub, namespace := p.Node(), ""
		name := parts[4]
		if parts[3] == "namespaces" {
			sub, namespace, name = p.Pod(), parts[4], parts[6]
			if parts[5] == "services" {
				sub = p.Service()
			}
		}
		if err := sub.Connect[r.Method](r.Context(), w, r, namespace, name); err != nil {
			status, _ := err.(apierrors.APIStatus)
			http.Error(w, err.Error(), int(status.Status().Code))
		}
	}))
	t.Cleanup(front.Close)
	t.Cleanup(p.transport.CloseIdleConnections)
	return front
}

// ask sends a request with this path, unchanged.
func ask(t *testing.T, front *httptest.Server, method, path string, header http.Header) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, front.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	answer, err := front.Client().Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, strings.TrimSpace(string(text))
}

const space = "/api/v1/namespaces/default"

func TestTargets(t *testing.T) {
	front, plain, secure := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s tls=%t", r.Method, r.RequestURI, r.TLS != nil)
	})
	for _, c := range []struct {
		method, path, want string
		code               int
	}{
		{"GET", space + "/pods/web/proxy/", "GET / tls=false", 200},
		{"POST", space + "/pods/web/proxy", "POST / tls=false", 200},
		{"OPTIONS", space + "/pods/web/proxy/x", "OPTIONS /x tls=false", 200},
		{"DELETE", fmt.Sprintf("%s/pods/web:%d/proxy/x/", space, plain), "DELETE /x/ tls=false", 200},
		{"PATCH", fmt.Sprintf("%s/pods/https:web:%d/proxy/x", space, secure), "PATCH /x tls=true", 200},
		{"PUT", space + "/services/plain/proxy/x", "PUT /x tls=false", 200},
		{"GET", space + "/services/named:web/proxy/x", "GET /x tls=false", 200},
		{"GET", space + "/services/named:80/proxy/x", "GET /x tls=false", 200},
		{"GET", "/api/v1/nodes/n1/proxy/logs/", "GET /logs/ tls=true", 200},
		{"GET", fmt.Sprintf("/api/v1/nodes/n1:%d/proxy/stats", secure), "GET /stats tls=true", 200},
		{"GET", fmt.Sprintf("/api/v1/nodes/n1:%d/proxy/stats", plain), "GET /stats tls=false", 200},
		// The part of the path after the proxy must not be changed.
		{"GET", space + "/pods/web/proxy/a%2Fb//c/../d%20e?q=%2F&x=a+b;c", "GET /a%2Fb//c/../d%20e?q=%2F&x=a+b;c tls=false", 200},
		{"GET", space + "/pods/web%2Fproxy/x", "escaped slash", 400},
		{"GET", space + "/pods/a:b:c:d/proxy/", `invalid pod request "a:b:c:d"`, 400},
		{"GET", space + "/services/ftp:named:80/proxy/", `invalid service request "ftp:named:80"`, 400},
		{"GET", "/api/v1/nodes/:1/proxy/", `invalid node request ":1"`, 400},
		{"GET", space + "/pods/none/proxy/", `pods "none" not found`, 404},
		{"GET", space + "/pods/web:1/proxy/", "error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused", 503},
		{"GET", space + "/services/named:90/proxy/", `no service port 90 found for service "named"`, 503},
		{"GET", space + "/services/named/proxy/", `no endpoints available for service "named"`, 503},
		{"GET", space + "/services/named:other/proxy/", `no endpoints available for service "named"`, 503},
		{"GET", space + "/services/none/proxy/", `no endpoints available for service "none"`, 503},
	} {
		answer, text := ask(t, front, c.method, c.path, nil)
		if answer.StatusCode != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d %s\n want: %d %s", c.method, c.path, answer.StatusCode, text, c.code, c.want)
		}
	}
	answer, _ := ask(t, front, "GET", space+"/pods/web/proxy?a=b", nil)
	if answer.StatusCode != http.StatusMovedPermanently || answer.Header.Get("Location") != space+"/pods/web/proxy/?a=b" {
		t.Errorf("the root: %s %s", answer.Status, answer.Header.Get("Location"))
	}
}

// TestAddresses: the server's own host can't be reached through the proxy.
func TestAddresses(t *testing.T) {
	front, plain, _ := serve(t, true, func(http.ResponseWriter, *http.Request) { t.Error("reached") })
	for _, path := range []string{
		space + "/pods/web/proxy/", space + "/pods/new/proxy/", space + "/services/plain/proxy/", "/api/v1/nodes/n1/proxy/",
		fmt.Sprintf("/api/v1/nodes/n1:%d/proxy/", plain),
	} {
		if answer, text := ask(t, front, "GET", path, nil); answer.StatusCode != 400 || text != "address not allowed" {
			t.Errorf("%s: %s %s", path, answer.Status, text)
		}
	}
	for text, ok := range map[string]bool{
		"169.254.169.254": false, "::1": false, "fe80::1": false, "0.0.0.0": false, "::ffff:127.0.0.1": false, "": false, "10.0.0.1": true, "fd00::1": true,
	} {
		if err := checkProxyableIP(net.ParseIP(text)); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestNameThatChanges: an address is checked again when it is connected to,
// even that of a kubelet's port, because a name may have changed its meaning
// (CVE-2020-8562).
func TestNameThatChanges(t *testing.T) {
	backend := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	t.Cleanup(backend.Close)
	kubelets, err := kubeletclient.New(kubeletclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kubelets.Close)
	p := New(Sources{Kubelets: kubelets, Nodes: registrytest.NewNamed(core.Nodes, map[string]core.Object{"n1": &core.Node{Status: corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port(t, backend)}},
	}}})})
	for _, path := range []string{"/api/v1/nodes/n1/proxy/", fmt.Sprintf("/api/v1/nodes/https:n1:%d/proxy/", port(t, backend)),
		fmt.Sprintf("/api/v1/nodes/n1:%d/proxy/", port(t, backend)+1)} {
		asked := false
		p.checkIP = func(ip net.IP) error {
			if !asked {
				asked = true
				return nil
			}
			return checkProxyableIP(ip)
		}
		if answer, text := ask(t, front(t, p), "GET", path, nil); answer.StatusCode != 503 || !strings.Contains(text, "address not allowed") {
			t.Errorf("%s: %s %s", path, answer.Status, text)
		}
	}
}

func TestHeaders(t *testing.T) {
	seen := make(chan *http.Request, 1)
	front, _, _ := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("X-Mine", "1")
		seen <- r
	})
	sent := http.Header{
		"Authorization": {"Bearer secret"}, "X-Remote-User": {"root"}, "Impersonate-User": {"root"}, "X-Forwarded-For": {"192.0.2.1"},
		"Cookie": {"a=b"}, "Connection": {"X-Hop"}, "X-Hop": {"1"}, "X-App": {"kept"}, "X_app": {"kept"},
		"X_Remote_User": {"root"}, "X-Remote_Extra-A": {"b"}, "Impersonate_User": {"root"},
	}
	answer, _ := ask(t, front, "GET", space+"/pods/web/proxy/x", sent)
	if answer.Header.Get("Access-Control-Allow-Origin") != "" || answer.Header.Get("X-Mine") != "1" {
		t.Errorf("answered: %v", answer.Header)
	}
	r := <-seen
	for name, want := range map[string]string{
		"Authorization": "", "X-Remote-User": "", "Impersonate-User": "", "X-Hop": "", "X-App": "kept", "X_app": "kept", "Cookie": "a=b",
		"X_remote_user": "", "X-Remote_extra-A": "", "Impersonate_user": "",
		"X-Forwarded-For": "192.0.2.1, 127.0.0.1", "X-Forwarded-Uri": space + "/pods/web/proxy/x",
	} {
		if got := strings.Join(r.Header.Values(name), "|"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if ask(t, front, "GET", "/api/v1/nodes/n1/proxy/x", sent); (<-seen).Header.Get("Cookie") != "" {
		t.Error("the kubelet got a cookie")
	}
}

// TestHeadersWithoutEnd: what a pod or a node sends before its answer is bounded.
func TestHeadersWithoutEnd(t *testing.T) {
	front, _, _ := serve(t, false, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 2 * rest.MaxAnswerHeaders / 16 {
			w.Header().Set(fmt.Sprintf("X-%010d", i), "")
		}
	})
	for _, path := range []string{space + "/pods/web/proxy/", "/api/v1/nodes/n1/proxy/"} {
		if answer, text := ask(t, front, "GET", path, nil); answer.StatusCode != 503 || !strings.Contains(text, "headers exceeded") {
			t.Errorf("%s: %s, %d headers: %.100s", path, answer.Status, len(answer.Header), text)
		}
	}
}

func TestLinks(t *testing.T) {
	const page = `<!doctype html><a href="/x?a=b&amp;c">x</a><img src='rel.png'><a HREF="//elsewhere/x">y</a><form action="/"><br/>` +
		`<script>if (a < b) { go("/x") }</script><a href="mailto:a@b">z</a><p title="/x">&nbsp;text` + "\xff"
	big := "<script>" + strings.Repeat("/* long */", maxToken/5) + "</script>" + `<a href="/after">`
	front, plain, _ := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/redirect":
			w.Header().Set("Location", r.URL.Query().Get("to"))
			w.WriteHeader(http.StatusFound)
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, _ = io.WriteString(z, page)
			_ = z.Close()
			w.Header().Set("Content-Length", strconv.Itoa(packed.Len()))
			_, _ = w.Write(packed.Bytes())
		case "/big":
			_, _ = io.WriteString(w, big)
		default:
			w.Header().Set("Content-Length", strconv.Itoa(len(page)))
			_, _ = io.WriteString(w, page)
		}
	})
	prefix := space + "/pods/web/proxy"
	want := strings.NewReplacer(`<a href="/x?a=b&amp;c">`, `<a href="`+prefix+`/x?a=b&amp;c">`, `<form action="/">`, `<form action="`+prefix+`/">`).Replace(page)
	for _, path := range []string{"/page", "/gzip"} {
		answer, text := ask(t, front, "GET", prefix+path, http.Header{"Accept-Encoding": {"gzip"}})
		if text != want || answer.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %v\n%s\n want:\n%s", path, answer.Header, text, want)
		}
	}
	if _, text := ask(t, front, "GET", prefix+"/big", nil); text != big {
		t.Errorf("%d of %d bytes of a large page", len(text), len(big))
	}
	for to, want := range map[string]string{
		"/y/z%2F?q=1":         prefix + "/y/z%2F?q=1",
		"y":                   "y",
		"https://elsewhere/x": "https://elsewhere/x",
		fmt.Sprintf("http://127.0.0.1:%d/x", plain): prefix + "/x",
		front.URL + "/x": front.URL + prefix + "/x",
		prefix + "/x":    prefix + "/x",
		prefix + "y":     prefix + prefix + "y",
	} {
		answer, _ := ask(t, front, "GET", prefix+"/redirect?to="+url.QueryEscape(to), nil)
		if got := answer.Header.Get("Location"); answer.StatusCode != http.StatusFound || got != want {
			t.Errorf("%s: %s, want %s", to, got, want)
		}
	}
}

func TestWebSocket(t *testing.T) {
	echo := websocket.Handler(func(c *websocket.Conn) { _, _ = io.Copy(c, c) })
	front, _, _ := serve(t, false, echo.ServeHTTP)
	for _, path := range []string{space + "/pods/web/proxy", space + "/services/plain/proxy/x", "/api/v1/nodes/n1/proxy/x"} {
		c, err := websocket.Dial("ws"+strings.TrimPrefix(front.URL, "http")+path, "", front.URL)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		text := ""
		if err := websocket.Message.Send(c, "hello"); err != nil {
			t.Error(err)
		}
		if err := websocket.Message.Receive(c, &text); err != nil || text != "hello" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
		_ = c.Close()
	}
}
