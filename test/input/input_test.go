// Package input_test sends a cluster bad input, and checks that each case gets
// a clear answer and that nothing is lost.
package input_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"kctl/test/harness"
)

func TestBadInput(t *testing.T) {
	// No node is needed: the API server and kctl answer all of this.
	c := harness.Start(t, harness.Options{Without: []string{"containerd", "scheduler", "kubelet", "registry"}})
	t.Run("requests", func(t *testing.T) { requests(t, c.In(t)) })
	t.Run("tokens", func(t *testing.T) { tokens(t, c.In(t)) })
	t.Run("rights", func(t *testing.T) { rights(t, c.In(t)) })
	t.Run("kctl", func(t *testing.T) { commands(t, c.In(t)) })
	t.Run("manifests", func(t *testing.T) { manifests(t, c.In(t)) })
	t.Run("nothing was lost", func(t *testing.T) {
		if out := c.In(t).Kctl("get", "configmap", "kept", "-o", "jsonpath={.data.a}"); out != "b" {
			t.Errorf("the config map says %q", out)
		}
	})
}

const podManifest = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":{"containers":[{"name":"c","image":"x"}]}}`

func requests(t *testing.T, c *harness.Cluster) {
	c.Kctl("create", "configmap", "kept", "--from-literal=a=b")
	config := c.Config("admin")
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	const pods, maps = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/configmaps"
	strict := "?fieldValidation=Strict"
	for _, tc := range []struct {
		name, method, path, contentType, body string
		code                                  int
		says                                  string
	}{
		{"unknown field", "POST", pods + strict, "", strings.Replace(fmt.Sprintf(podManifest, "a"), `"image"`, `"imaeg"`, 1), 400,
			`unknown field "spec.containers[0].imaeg"`},
		{"twice a field", "POST", pods + strict, "", `{"kind":"Pod","kind":"Pod"}`, 400, "duplicate field"},
		{"wrong type", "POST", pods, "", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":"none"}}`, 400, "containers"},
		{"broken JSON", "POST", pods, "", `{"apiVersion":"v1",`, 400, ""},
		{"broken YAML", "POST", pods, "application/yaml", "a: [b", 400, "yaml"},
		{"empty body", "POST", pods, "", ``, 400, ""},
		{"other kind", "POST", pods, "", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, 400, "Pod"},
		{"other media type", "POST", pods, "text/csv", `a,b`, 415, ""},
		{"too large", "POST", maps, "", `{"data":{"a":"` + strings.Repeat("x", 4<<20) + `"}}`, 413, ""},
		{"no image", "POST", pods, "", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}`, 422,
			"spec.containers[0].image: Required value"},
		{"no containers", "POST", pods, "", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{}}`, 422, "spec.containers: Required value"},
		{"bad name", "POST", pods, "", fmt.Sprintf(podManifest, "Not_A_Name"), 422, "metadata.name: Invalid value"},
		{"no name", "POST", pods, "", fmt.Sprintf(podManifest, ""), 422, "metadata.name: Required value"},
		{"missing namespace", "POST", "/api/v1/namespaces/nowhere/pods", "", fmt.Sprintf(podManifest, "a"), 404, `namespaces "nowhere" not found`},
		{"other namespace", "POST", pods, "",
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b"},"spec":{"containers":[{"name":"c","image":"x"}]}}`, 400, "namespace"},
		{"duplicate", "POST", maps, "", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kept"}}`, 409, `configmaps "kept" already exists`},
		{"stale update", "PUT", maps + "/kept", "", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kept","resourceVersion":"1"}}`, 409,
			"the object has been modified"},
		{"update of another", "PUT", maps + "/kept", "", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"}}`, 400, "name"},
		{"no such object", "GET", maps + "/nothing", "", "", 404, `configmaps "nothing" not found`},
		{"no such resource", "GET", "/api/v1/namespaces/default/spaceships", "", "", 404, "could not find"},
		{"no such version", "GET", "/apis/apps/v7/things", "", "", 404, ""},
		{"no such verb", "PUT", maps, "", "{}", 405, ""},
		{"bad selector", "GET", maps + "?labelSelector=a%3D%3D%3D", "", "", 400, "unable to parse requirement"},
		{"bad field selector", "GET", pods + "?fieldSelector=spec.colour%3Dred", "", "", 400, "spec.colour"},
		{"bad limit", "GET", maps + "?limit=many", "", "", 400, ""},
		{"bad continue", "GET", maps + "?continue=rubbish", "", "", 400, "continue"},
		{"future revision", "GET", maps + "?resourceVersion=99999999999&resourceVersionMatch=NotOlderThan", "", "", 504, "Too large resource version"},
		{"bad patch", "PATCH", maps + "/kept", "application/json-patch+json", `[{"op":"replace","path":"/data/nothing/at/all","value":1}]`, 422, ""},
		{"broken patch", "PATCH", maps + "/kept", "application/merge-patch+json", `{`, 400, ""},
		{"patch of the name", "PATCH", maps + "/kept", "application/merge-patch+json", `{"metadata":{"name":"other"}}`, 400, "name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tc.method, config.Host+tc.path, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			if tc.contentType == "" {
				tc.contentType = "application/json"
			}
			req.Header.Set("Content-Type", tc.contentType)
			code, status, body := ask(t, client, req)
			if code != tc.code || status.Kind != "Status" || int(status.Code) != tc.code || !strings.Contains(status.Message, tc.says) {
				t.Errorf("answered %d, want %d with a Status that says %q:\n%.600s", code, tc.code, tc.says, body)
			}
		})
	}
}

func ask(t *testing.T, client *http.Client, req *http.Request) (int, metav1.Status, []byte) {
	t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var status metav1.Status
	_ = json.Unmarshal(body, &status)
	return resp.StatusCode, status, body
}

// tokens sends bearer tokens of every bad kind, and one good one.
func tokens(t *testing.T, c *harness.Cluster) {
	client := c.Client()
	harness.Eventually(t, 30*time.Second, func() error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	issued, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"somewhere-else"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	good := issued.Status.Token
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(good, claims); err != nil {
		t.Fatal(err)
	}
	keyPEM, err := os.ReadFile(filepath.Join(c.Dir, "pki", "sa.key"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(keyPEM)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(change func(jwt.MapClaims)) string {
		copied := jwt.MapClaims{}
		maps.Copy(copied, claims)
		change(copied)
		signed, err := jwt.NewWithClaims(jwt.SigningMethodES256, copied).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	unsigned, err := jwt.NewWithClaims(jwt.SigningMethodNone, claims).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	for name, tc := range map[string]struct {
		token string
		code  int
	}{
		"good":             {good, 403}, // known, but without rights
		"resigned good":    {sign(func(jwt.MapClaims) {}), 403},
		"wrong signature":  {parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])), 401},
		"no signature":     {unsigned, 401},
		"expired":          {sign(func(m jwt.MapClaims) { m["exp"] = time.Now().Add(-time.Hour).Unix() }), 401},
		"not yet":          {sign(func(m jwt.MapClaims) { m["nbf"] = time.Now().Add(time.Hour).Unix() }), 401},
		"another audience": {elsewhere.Status.Token, 401},
		"another issuer":   {sign(func(m jwt.MapClaims) { m["iss"] = "https://elsewhere.example" }), 401},
		"rubbish":          {"rubbish", 401},
		"none":             {"", 401},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), "GET", c.Config("admin").Host+"/api/v1/namespaces/default/secrets", nil)
			if err != nil {
				t.Fatal(err)
			}
			if tc.token != "" {
				req.Header.Set("Authorization", "Bearer "+tc.token)
			}
			if code, _, body := ask(t, plain(t, c), req); code != tc.code {
				t.Errorf("answered %d, want %d: %s", code, tc.code, body)
			}
		})
	}
}

// plain is a client that trusts the server and has no certificate.
func plain(t *testing.T, c *harness.Cluster) *http.Client {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(c.Dir, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// rights: a user who lacks one is told which verb on which resource.
func rights(t *testing.T, c *harness.Cluster) {
	client := c.Client()
	if _, err := client.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(c.Kctl("create", "token", "reader"))
	denied := func(args ...string) string {
		t.Helper()
		return c.KctlFails(append(args, "--token="+token, "--kubeconfig="+noUser(t, c))...)
	}
	if text := denied("get", "pods"); !strings.Contains(text,
		`pods is forbidden: User "system:serviceaccount:default:reader" cannot list resource "pods" in API group "" in the namespace "default"`) {
		t.Errorf("forbidden says %q", text)
	}
	for _, manifest := range []string{
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reads"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}]}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"reads"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"reads"},"subjects":[{"kind":"ServiceAccount","name":"reader","namespace":"default"}]}`,
	} {
		c.KctlInput(manifest, "create", "-f", "-")
	}
	harness.Eventually(t, 30*time.Second, func() error {
		r := c.Run("", c.Bin("kctl"), "get", "pods", "--token="+token, "--kubeconfig="+noUser(t, c))
		if r.Code != 0 {
			return fmt.Errorf("%s", r.Stderr)
		}
		return nil
	})
	if text := denied("delete", "pod", "x"); !strings.Contains(text, `cannot delete resource "pods"`) {
		t.Errorf("forbidden says %q", text)
	}
}

// noUser is a kubeconfig that names the server and no user.
func noUser(t *testing.T, c *harness.Cluster) string {
	t.Helper()
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x",
"clusters":[{"name":"x","cluster":{"server":%q,"certificate-authority":%q}}],
"contexts":[{"name":"x","context":{"cluster":"x"}}]}`, c.Config("admin").Host, filepath.Join(c.Dir, "pki", "ca.crt"))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func commands(t *testing.T, c *harness.Cluster) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tc := range []struct {
		args []string
		says string
	}{
		{[]string{"run", "x"}, "--image is required"},
		{[]string{"run", "x", "--image=UPPER:::"}, `invalid image name "UPPER:::"`},
		{[]string{"run", "x", "--image=a", "--image-pull-policy=Sometimes"}, "Sometimes"},
		{[]string{"run", "Bad_Name", "--image=a"}, "Bad_Name"},
		{[]string{"run", "x", "--image=a", "--overrides={"}, "overrides"},
		{[]string{"get", "spaceships"}, "spaceships"},
		{[]string{"get", "pod", "nothing"}, `Error from server (NotFound): pods "nothing" not found`},
		{[]string{"gte", "pods"}, "gte"},
		{[]string{"get", "pods", "-o", "jsonpath={.items[}"}, "jsonpath"},
		{[]string{"apply", "-f", write("broken.yaml", "a: [b\n")}, "broken.yaml"},
		{[]string{"apply", "-f", write("broken.json", `{"a":`)}, "broken.json"},
		{[]string{"apply", "-f", write("field.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: f}\ndaat: {}\n")}, `unknown field "daat"`},
		{[]string{"apply", "-f", filepath.Join(dir, "missing.yaml")}, "missing.yaml"},
		{[]string{"up", "--dir", c.Dir, "--without=engine"}, "engine"},
		{[]string{"up", "--dir", c.Dir, "--port=1"}, "port"},
		{[]string{"down", "--dir", filepath.Join(dir, "none")}, "no cluster in"},
		{[]string{"get", "pods", "--kubeconfig", filepath.Join(dir, "none")}, "none"},
		{[]string{"get", "pods", "--server=https://127.0.0.1:1"}, "127.0.0.1:1"},
	} {
		t.Run(strings.Join(tc.args[:2], " "), func(t *testing.T) {
			stderr := c.In(t).KctlFails(tc.args...)
			if !strings.Contains(stderr, tc.says) {
				t.Errorf("kctl %s says %q, want %q in it", strings.Join(tc.args, " "), stderr, tc.says)
			}
			if bytes.Contains([]byte(stderr), []byte("goroutine ")) {
				t.Errorf("kctl %s panics:\n%s", strings.Join(tc.args, " "), stderr)
			}
		})
	}
}

// manifests are larger than anybody writes them.
func manifests(t *testing.T, c *harness.Cluster) {
	const documents = 2000
	var many strings.Builder
	for i := range documents {
		fmt.Fprintf(&many, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: many-%d, labels: {many: \"yes\"}}\ndata: {n: \"%d\"}\n", i, i)
	}
	for _, args := range [][]string{{"create", "-f", "-"}, {"delete", "-f", "-"}} {
		out := c.KctlInput(many.String(), append(args, "-o", "name")...)
		if lines := strings.Count(out, "\n"); lines != documents {
			t.Errorf("kctl %s with %d documents tells of %d", args[0], documents, lines)
		}
	}
	if left := c.Kctl("get", "configmap", "-l", "many=yes", "-o", "name"); left != "" {
		t.Errorf("left over: %.200s", left)
	}
	huge := filepath.Join(t.TempDir(), "huge.yaml")
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: huge}\ndata:\n  a: " + strings.Repeat("x", 50<<20) + "\n"
	if err := os.WriteFile(huge, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"create", "-f", huge}, {"apply", "-f", huge}, {"apply", "--server-side", "-f", huge}} {
		stderr := c.KctlFails(args...)
		if !strings.Contains(stderr, "too large") || len(stderr) > 1000 {
			t.Errorf("kctl %s of 50 MB says %.300q", strings.Join(args[:len(args)-1], " "), stderr)
		}
	}
}
