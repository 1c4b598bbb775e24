package access

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/authn/trust"
	"kctl/apiserver/internal/config"
	"kctl/proto/core"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// outside serves over TLS what the API server calls, and returns the URL and
// the CA file.
func outside(t *testing.T, handler http.Handler) (url, caFile string) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	caFile = filepath.Join(t.TempDir(), "outside.crt")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(caFile, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	return server.URL, caFile
}

// webhookFile writes the kubeconfig with which the API server calls a webhook.
func webhookFile(t *testing.T, url, caFile string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "webhook.yaml")
	text := "clusters: [{name: c, cluster: {server: '" + url + "', certificate-authority: " + caFile + "}}]\n" +
		"contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// tokenHook knows the tokens "hook-NAME".
func tokenHook(w http.ResponseWriter, r *http.Request) {
	var review authenticationv1.TokenReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if name, ok := strings.CutPrefix(review.Spec.Token, "hook-"); ok {
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: name, Groups: []string{"hooked"}}}
	}
	_ = json.NewEncoder(w).Encode(review)
}

// oidcIssuer is an issuer of ID tokens; sign makes one.
func oidcIssuer(t *testing.T) (url, caFile string, sign func(account string) string) {
	t.Helper()
	private, public, err := pki.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	privateFile, publicFile := filepath.Join(dir, "key"), filepath.Join(dir, "key.pub")
	if err := errors.Join(pki.WriteFile(privateFile, private), pki.WriteFile(publicFile, public)); err != nil {
		t.Fatal(err)
	}
	keys, err := serviceaccount.LoadPublicKeys([]string{publicFile})
	if err != nil {
		t.Fatal(err)
	}
	url, caFile = outside(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		documents, err := serviceaccount.NewDocuments("https://"+r.Host, "https://"+r.Host+serviceaccount.KeySetPath, keys)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case r.URL.Path == serviceaccount.KeySetPath:
			_, _ = w.Write(documents.KeySet)
		default:
			_, _ = w.Write(documents.Configuration)
		}
	}))
	return url, caFile, func(account string) string {
		key, err := serviceaccount.LoadSigningKey(privateFile)
		if err != nil {
			t.Fatal(err)
		}
		issuer, err := serviceaccount.NewIssuer(url, []string{"kctl"}, key, clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		sa := &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: account, UID: "u"}}
		token, _, err := issuer.Token(t.Context(), sa, authenticationv1.TokenRequestSpec{}, serviceaccount.Bound{})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
}

// everyKind starts a server that accepts every kind of credential.
func everyKind(t *testing.T) (c *cluster, proxies *pki.Pair, sign func(account string) string) {
	t.Helper()
	proxies, err := pki.NewCA("proxies", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	proxyFile := filepath.Join(t.TempDir(), "proxies.crt")
	if err := os.WriteFile(proxyFile, proxies.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	hookURL, hookCA := outside(t, http.HandlerFunc(tokenHook))
	issuerURL, issuerCA, sign := oidcIssuer(t)
	c = start(t, func(o *config.Options) {
		o.BootstrapTokenAuth = true
		o.RequestHeader = config.RequestHeader{
			ClientCAFile: proxyFile, AllowedNames: []string{"front"}, UsernameHeaders: []string{"X-Remote-User"},
			GroupHeaders: []string{"X-Remote-Group"}, ExtraPrefixes: []string{"X-Remote-Extra-"},
		}
		o.TokenWebhook.ConfigFile = webhookFile(t, hookURL, hookCA)
		o.OIDC.IssuerURL, o.OIDC.CAFile, o.OIDC.ClientID, o.OIDC.SigningAlgorithms = issuerURL, issuerCA, "kctl", []string{"ES256"}
	})
	return c, proxies, sign
}

func TestEveryKindOfIdentity(t *testing.T) {
	t.Parallel()
	c, proxies, sign := everyKind(t)
	ask := func(client *rest.Client, headers ...string) (authenticationv1.UserInfo, error) {
		var review authenticationv1.SelfSubjectReview
		var options []rest.Option
		for i := 0; i < len(headers); i += 2 {
			options = append(options, rest.Header(headers[i], headers[i+1]))
		}
		const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
		err := client.Do(t.Context(), http.MethodPost, path, &authenticationv1.SelfSubjectReview{}, &review, options...)
		return review.Status.UserInfo, err
	}
	front := c.Certificate(proxies, pki.Subject{CommonName: "front", Client: true})
	bob := c.Certificate(c.CA, pki.Subject{CommonName: "bob", Client: true})
	smuggled := []string{"X-Remote-User", "root", "X-Remote-Group", "system:masters"}
	for name, test := range map[string]struct {
		client  *rest.Client
		headers []string
		user    string // "" for 401
		groups  []string
	}{
		"a proxy names a user":           {front, []string{"X-Remote-User", "ann", "X-Remote-Group", "dev"}, "ann", []string{"dev", "system:authenticated"}},
		"a proxy names nobody":           {front, nil, "", nil},
		"another proxy of the authority": {c.Certificate(proxies, pki.Subject{CommonName: "back", Client: true}), smuggled, "", nil},
		"headers beside a token":         {c.Token("nobody"), smuggled, "jane", []string{"dev", "system:authenticated"}},
		"headers beside a certificate":   {bob, smuggled, "bob", []string{"system:authenticated"}},
		"headers alone":                  {c.Token(""), smuggled, "", nil},
		"a proxy's name of the clients' CA": {c.Certificate(c.CA, pki.Subject{CommonName: "front", Client: true}), smuggled, "front",
			[]string{"system:authenticated"}},
		"a token that the webhook knows":      {c.Token("hook-ann"), nil, "ann", []string{"hooked", "system:authenticated"}},
		"a token that nobody knows":           {c.Token("ann"), nil, "", nil},
		"an ID token":                         {c.Token(sign("ann")), nil, "ISSUER#system:serviceaccount:elsewhere:ann", []string{"system:authenticated"}},
		"an ID token that was changed":        {c.Token(sign("ann") + "A"), nil, "", nil},
		"a bootstrap token that is not there": {c.Token("abcdef.0123456789abcdef"), nil, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			user, err := ask(test.client, test.headers...)
			if test.user == "" {
				if !apierrors.IsUnauthorized(err) {
					t.Fatalf("got in as %q (%v)", user.Username, err)
				}
				return
			}
			_, own, found := strings.Cut(user.Username, "#")
			if found {
				user.Username = "ISSUER#" + own
			}
			if err != nil || user.Username != test.user || !slices.Equal(user.Groups, test.groups) {
				t.Errorf("%+v %v", user, err)
			}
		})
	}
	t.Run("bootstrap token", c.bootstrapToken)
	t.Run("token in a secret", c.tokenInSecret)
	t.Run("two Authorization headers", c.twoTokens)
	t.Run("what others are told", func(t *testing.T) {
		c.Until("the authorities are published", func(ctx context.Context) bool {
			var published core.ConfigMap
			err := c.Root().Resource(core.ConfigMaps, core.NamespaceSystem).Get(ctx, trust.Name, &published)
			return err == nil && published.Data["client-ca-file"] == string(c.CA.Cert) && published.Data["requestheader-client-ca-file"] == string(proxies.Cert) &&
				published.Data["requestheader-username-headers"] == `["X-Remote-User"]` && published.Data["requestheader-allowed-names"] == `["front"]`
		})
	})
}

// bootstrapToken: a node joins with a token until that expires, and then the
// secret is deleted.
func (c *cluster) bootstrapToken(t *testing.T) {
	secrets := c.Root().Resource(core.Secrets, core.NamespaceSystem)
	token := func(id, expiration string) {
		c.Must(secrets.Create(t.Context(), &core.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: "bootstrap.kubernetes.io/token",
			StringData: map[string]string{
				"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
				"auth-extra-groups": "system:bootstrappers:nodes", "expiration": expiration,
			},
		}, nil))
	}
	token("abcdef", time.Now().Add(time.Hour).Format(time.RFC3339))
	user, err := c.whoami(c.Token("abcdef.0123456789abcdef"))
	groups := []string{"system:bootstrappers", "system:bootstrappers:nodes", "system:authenticated"}
	if err != nil || user.Username != "system:bootstrap:abcdef" || !slices.Equal(user.Groups, groups) {
		t.Errorf("%+v %v", user, err)
	}
	if _, err := c.whoami(c.Token("abcdef.0123456789abcdee")); !apierrors.IsUnauthorized(err) {
		t.Errorf("a wrong secret: %v", err)
	}
	token("fedcba", time.Now().Add(-time.Hour).Format(time.RFC3339))
	if _, err := c.whoami(c.Token("fedcba.0123456789abcdef")); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token that has run out: %v", err)
	}
	c.Until("the token that has run out is removed", func(ctx context.Context) bool {
		return apierrors.IsNotFound(secrets.Get(ctx, "bootstrap-token-fedcba", &core.Secret{}))
	})
	c.Must(secrets.Get(t.Context(), "bootstrap-token-abcdef", &core.Secret{}))
}

// tokenInSecret: a secret created for a service account is filled, its token is
// valid, and it is deleted with the account.
func (c *cluster) tokenInSecret(t *testing.T) {
	c.Namespace("legacy")
	c.Must(c.Root().Resource(core.ServiceAccounts, "legacy").Create(t.Context(), &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, nil))
	filled := c.TokenSecret("legacy", "robot-token", "robot")
	if string(filled.Data["namespace"]) != "legacy" || string(filled.Data["ca.crt"]) != string(c.CA.Cert) {
		t.Errorf("the secret holds %d keys", len(filled.Data))
	}
	user, err := c.whoami(c.Token(string(filled.Data["token"])))
	if err != nil || user.Username != "system:serviceaccount:legacy:robot" {
		t.Errorf("%+v %v", user, err)
	}
	secrets := c.Root().Resource(core.Secrets, "legacy")
	c.Until("it is written down that it was used", func(ctx context.Context) bool {
		return secrets.Get(ctx, "robot-token", filled) == nil && filled.Labels["kubernetes.io/legacy-token-last-used"] != ""
	})
	var tracking core.ConfigMap
	c.Must(c.Root().Resource(core.ConfigMaps, "kube-system").Get(t.Context(), "kube-apiserver-legacy-service-account-token-tracking", &tracking))
	if _, err := time.Parse(time.DateOnly, tracking.Data["since"]); err != nil {
		t.Error(tracking.Data, err)
	}
	c.Must(c.Root().Resource(core.ServiceAccounts, "legacy").Delete(t.Context(), "robot", nil, nil))
	c.Until("the secret goes with its account", func(ctx context.Context) bool {
		return apierrors.IsNotFound(secrets.Get(ctx, "robot-token", &core.Secret{}))
	})
}

// twoTokens: only the first Authorization header counts, as upstream.
func (c *cluster) twoTokens(t *testing.T) {
	for first, want := range map[string]int{
		"Bearer nobody": http.StatusCreated, "Bearer guess": http.StatusUnauthorized, "Basic cm9vdA==": http.StatusUnauthorized,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.Address+"/apis/authentication.k8s.io/v1/selfsubjectreviews",
			strings.NewReader(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`))
		c.Must(err)
		r.Header["Authorization"] = []string{first, "Bearer master"}
		answer, err := c.Token("").HTTP().Do(r)
		c.Must(err)
		var review authenticationv1.SelfSubjectReview
		_ = json.NewDecoder(answer.Body).Decode(&review)
		_ = answer.Body.Close()
		if answer.StatusCode != want || slices.Contains(review.Status.UserInfo.Groups, core.GroupMasters) {
			t.Errorf("%s: %d, %+v", first, answer.StatusCode, review.Status.UserInfo)
		}
	}
}
