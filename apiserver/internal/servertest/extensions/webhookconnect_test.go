package extensions

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
)

// TestConnectionsAreChanged: what webhooks make of a connection's options is what the
// kubelet is asked for. A proxy's path stays.
func TestConnectionsAreChanged(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	asked := make(chan url.Values, 1)
	c.NodeAt("n1", func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Query()
		http.Error(w, "enough", http.StatusTeapot)
	})
	p := servertest.Pod("web")
	p.Spec.NodeName = "n1"
	c.Created("default", p)
	c.register(h, true, h.webhook("connect", func(w *admissionregistrationv1.MutatingWebhook) {
		w.ObjectSelector = nil
		w.Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Connect}
	}))
	for _, test := range []struct{ way, patch, want string }{
		{"exec?command=ls&command=-l&stdin=true&stdout=true", `[]`, "command=ls&command=-l&input=1&output=1"},
		{"exec?command=ls&command=-l&stdin=true&stdout=true", `[{"op":"remove","path":"/stdin"},{"op":"add","path":"/command/-","value":"&"}]`,
			"command=ls&command=-l&command=%26&output=1"},
		{"attach?stdout=true", `[{"op":"add","path":"/tty","value":true},{"op":"add","path":"/stdin","value":true}]`, "input=1&output=1&tty=1"},
		{"portforward?ports=80,22&ports=81", `[{"op":"test","path":"/ports","value":[80,22,81]},{"op":"replace","path":"/ports","value":[8080,81]}]`,
			"port=8080%2C81"},
	} {
		h.on("connect", patches(test.patch))
		connection, err := c.Socket("/api/v1/namespaces/default/pods/web/"+test.way, protocolOf(test.way))
		if err == nil {
			defer connection.Close()
		}
		if got := (<-asked).Encode(); got != test.want {
			t.Errorf("%s, changed by %s: the kubelet was asked for %s, not %s", test.way, test.patch, got, test.want)
		}
	}
	for patch, want := range map[string]string{
		`[{"op":"add","path":"/path","value":"/secret"}]`: "changed the path of a PodProxyOptions, which is not supported",
		`[{"op":"replace","path":"/kind","value":"Pod"}]`: "has to stay a /v1, Kind=PodProxyOptions",
	} {
		h.on("connect", patches(patch))
		answer, text := c.Ask(http.MethodGet, core.Pods.Path("default", "web")+"/proxy/", nil, nil)
		if answer.StatusCode != http.StatusInternalServerError || !strings.Contains(string(text), want) {
			t.Errorf("%s: %d %s", patch, answer.StatusCode, text)
		}
	}
}

func protocolOf(way string) string {
	if strings.HasPrefix(way, "portforward") {
		return "SPDY/3.1+portforward.k8s.io"
	}
	return "v5.channel.k8s.io"
}
