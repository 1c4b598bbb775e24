package httpget

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kctl/proto/core"
	"kctl/proto/release"
)

var container = &core.Container{Name: "main", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}, {Name: "other", ContainerPort: 1}}}

func TestURL(t *testing.T) {
	for want, action := range map[string]corev1.HTTPGetAction{
		"http://10.0.0.1:8080":                {},
		"http://10.0.0.1:8080/ok?a=b":         {Path: "ok?a=b"},
		"https://10.0.0.1:8080/ok":            {Path: "/ok", Scheme: corev1.URISchemeHTTPS},
		"http://localhost:8080/ok":            {Path: "/ok", Host: "localhost"},
		"http://[fd00::1]:8080/ok":            {Path: "/ok", Host: "fd00::1"},
		"http://10.0.0.1:8080/a%2Fb":          {Path: "a%2Fb"},
		"http://10.0.0.1:8080/100%25zz":       {Path: "/100%zz"}, // no URL
		"http://10.0.0.1:8080/elsewhere":      {Path: "https://example.com/elsewhere"},
		"http://10.0.0.1:8080/with%20blank#x": {Path: "/with blank#x"},
	} {
		action.Port = intstr.FromString("web")
		request, err := NewRequest(t.Context(), &action, container, "10.0.0.1", "probe")
		if err != nil || request.URL.String() != want {
			t.Errorf("%+v asks %v, %v, want %s", action, request, err, want)
		}
	}
}

// The user's headers take the place of the kubelet's.
func TestHeaders(t *testing.T) {
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	defer server.Close()
	host, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	for _, c := range []struct {
		headers             []corev1.HTTPHeader
		host, agent, accept string
	}{
		{nil, host + ":" + port, "kube-lifecycle/" + release.Kubernetes, "*/*"},
		{[]corev1.HTTPHeader{{Name: "host", Value: "example.test"}, {Name: "user-agent", Value: "mine"}, {Name: "Accept", Value: "text/plain"}}, "example.test",
			"mine", "text/plain"},
		{[]corev1.HTTPHeader{{Name: "Accept", Value: ""}, {Name: "User-Agent", Value: ""}}, host + ":" + port, "", ""},
	} {
		request, err := NewRequest(t.Context(), &corev1.HTTPGetAction{
			Port:        intstr.Parse(port),
			HTTPHeaders: append(c.headers, corev1.HTTPHeader{Name: "x-y", Value: "1"}, corev1.HTTPHeader{Name: "X-Y", Value: "2"}),
		}, container, host, "lifecycle")
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Transport: NewTransport()}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got.Host != c.host || got.UserAgent() != c.agent || strings.Join(got.Header["Accept"], ",") != c.accept || strings.Join(got.Header["X-Y"], ",") != "1,2" {
			t.Errorf("%v: host %q and %v, want %q, %q, %q", c.headers, got.Host, got.Header, c.host, c.agent, c.accept)
		}
	}
}

func TestPortNumber(t *testing.T) {
	for _, c := range []struct {
		port intstr.IntOrString
		want int
		fail string
	}{
		{intstr.FromString("web"), 8080, ""},
		{intstr.FromInt32(65535), 65535, ""},
		{intstr.FromInt32(65536), 0, "invalid port number: 65536"},
		{intstr.FromInt32(0), 0, "invalid port number: 0"},
		{intstr.FromString("none"), 0, `port "none" not found in container "main"`},
		{intstr.FromString("80"), 0, `port "80" not found in container "main"`},
	} {
		got, err := PortNumber(container, c.port)
		if got != c.want || (err == nil) != (c.fail == "") || err != nil && err.Error() != c.fail {
			t.Errorf("%v is %d, %v, want %d, %s", c.port.String(), got, err, c.want, c.fail)
		}
	}
}
