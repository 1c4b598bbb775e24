package operation

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/service"
	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
)

// Flags of kube-apiserver that each change a little.
func TestSmallFlags(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *config.Options) {
		fs := pflag.NewFlagSet("apiserver", pflag.ContinueOnError)
		o.AddFlags(fs)
		if err := fs.Parse([]string{
			"--default-not-ready-toleration-seconds=17", "--default-unreachable-toleration-seconds=18", "--disable-http2-serving",
			"--service-account-max-token-expiration=2h", "--min-request-timeout=1", "--endpoint-reconciler-type=none",
			"--advertise-address=192.0.2.7", "--external-hostname=api.example.com", "--disable-admission-plugins=ServiceAccount",
		}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("tolerations", func(t *testing.T) {
		answer, text := c.Request("POST", "/api/v1/namespaces/default/pods", servertest.AsMaster(),
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
		var pod core.Pod
		if err := json.Unmarshal([]byte(text), &pod); err != nil || len(pod.Spec.Tolerations) != 2 {
			t.Fatalf("%s %s: %v", answer.Status, text, err)
		}
		if n, u := pod.Spec.Tolerations[0].TolerationSeconds, pod.Spec.Tolerations[1].TolerationSeconds; *n != 17 || *u != 18 {
			t.Errorf("tolerates for %d and %d s", *n, *u)
		}
	})
	t.Run("tokens", func(t *testing.T) {
		c.Until("there is a token", func(context.Context) bool {
			answer, text := c.Request("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", servertest.AsMaster(),
				`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":86400}}`)
			if answer.StatusCode == http.StatusNotFound {
				return false // the account is being created
			}
			var token authenticationv1.TokenRequest
			err := json.Unmarshal([]byte(text), &token)
			if err != nil || answer.StatusCode != http.StatusCreated || *token.Spec.ExpirationSeconds != 7200 ||
				!strings.Contains(answer.Header.Get("Warning"), "shortened to 7200 seconds") {
				t.Errorf("%s %v %s: %v", answer.Status, answer.Header, text, err)
			}
			return true
		})
	})
	t.Run("http", func(t *testing.T) {
		answer, _ := c.Request("GET", "/api", servertest.AsMaster(), "")
		if answer.ProtoMajor != 1 || answer.TLS.NegotiatedProtocol == "h2" {
			t.Errorf("%s by %q", answer.Proto, answer.TLS.NegotiatedProtocol)
		}
	})
	t.Run("watches end", func(t *testing.T) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Address+"/api/v1/secrets?watch=1", nil)
		c.Must(err)
		r.Header.Set("Authorization", "Bearer master")
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		defer transport.CloseIdleConnections()
		answer, err := transport.RoundTrip(r)
		c.Must(err)
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil { // it runs until the client goes
			t.Error(err)
		}
	})
	t.Run("presence", func(t *testing.T) {
		_, text := c.Request("GET", "/.well-known/openid-configuration", servertest.AsMaster(), "")
		if !strings.Contains(text, `"https://api.example.com:`) {
			t.Error(text)
		}
		_, err := registry.GetStored[*corev1.Endpoints](t.Context(), c.Server.Resources().Endpoints, core.NamespaceDefault, service.ServerService)
		if !apierrors.IsNotFound(err) {
			t.Errorf("there are endpoints: %v", err)
		}
	})
	t.Run("pages", func(t *testing.T) {
		if answer, text := c.Request("GET", "/flagz", servertest.AsMaster(), ""); answer.StatusCode != 200 || !strings.Contains(text, "min-request-timeout: 1\n") {
			t.Errorf("%s %s", answer.Status, text)
		}
		if answer, text := c.Request("GET", "/statusz", servertest.AsMaster(), ""); answer.StatusCode != 200 || !strings.HasPrefix(text, "\napiserver statusz\n") {
			t.Errorf("%s %s", answer.Status, text)
		}
		if answer, _ := c.Request("GET", "/flagz", map[string]string{"Authorization": "Bearer nobody"}, ""); answer.StatusCode != 403 {
			t.Errorf("anybody: %s", answer.Status)
		}
	})
}
