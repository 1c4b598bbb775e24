package webhookclient_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"kctl/apiserver/internal/webhookclient"
)

// TestTheTimeoutThatWebhooksAreTold: a webhook is told its own timeout, or what is left of
// the request's time if that is less, in whole seconds.
func TestTheTimeoutThatWebhooksAreTold(t *testing.T) {
	told := make(chan string, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told <- r.URL.Query().Get("timeout")
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	client := webhookclient.NewClient(&admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: authority}, webhookclient.Access{},
		webhookclient.ClientOptions{Timeout: 2 * time.Hour, MaxAnswer: 1 << 10})
	t.Cleanup(client.Close)
	ask := func(ctx context.Context) time.Duration {
		if _, err := client.Post(ctx, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		timeout, err := time.ParseDuration(<-told)
		if err != nil {
			t.Fatal(err)
		}
		return timeout
	}
	if got := ask(t.Context()); got != 2*time.Hour {
		t.Errorf("without a deadline the webhook was told %v", got)
	}
	later, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
	defer cancel()
	if got := ask(later); got != 2*time.Hour {
		t.Errorf("with a later deadline the webhook was told %v", got)
	}
	sooner, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if got := ask(sooner); got <= 0 || got > time.Hour || got%time.Second != 0 {
		t.Errorf("with a deadline in an hour the webhook was told %v", got)
	}
}
