package extensions

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"kctl/apiserver/internal/servertest"
)

// TestWhatWebhooksTookIsNotTheServers: the time of two webhooks of each kind,
// each given up after a second, is in a request's duration and not in the time
// attributed to the server.
func TestWhatWebhooksTookIsNotTheServers(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	slow := func(w *admissionregistrationv1.MutatingWebhook) {
		w.TimeoutSeconds, w.FailurePolicy = new(int32(1)), new(admissionregistrationv1.Ignore)
	}
	h.raw("slow", func(_ http.ResponseWriter, r *http.Request, _ *admissionv1.AdmissionReview) { <-r.Context().Done() })
	c.register(h, true, h.webhook("slow", slow))
	c.register(h, false, h.webhook("slow", slow))
	if status, _ := c.refusal("slow"); status != nil {
		t.Fatal(status.Message)
	}
	whole, own := c.posted("apiserver_request_duration_seconds_sum"), c.posted("apiserver_request_sli_duration_seconds_sum")
	if whole-own < 2 {
		t.Errorf("requests took %v s, of which the server %v", whole, own)
	}
}

// posted is the value of a metric for creates of config maps.
func (c *cluster) posted(metric string) float64 {
	c.T.Helper()
	_, text := c.Request("GET", "/metrics", servertest.AsMaster(), "")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, metric+"{") && strings.Contains(line, `resource="configmaps"`) && strings.Contains(line, `verb="POST"`) {
			value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:len(line)-1], 64)
			c.Must(err)
			return value
		}
	}
	c.T.Fatal("there is no ", metric)
	return 0
}
