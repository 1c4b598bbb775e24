package operation

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
	"kctl/proto/rest"
)

func TestAudit(t *testing.T) {
	t.Parallel()
	c, path := servertest.StartAudited(t)
	as := func(agent, token string) *rest.Client {
		return c.Client(&rest.Config{BearerToken: token, UserAgent: agent})
	}
	maps := as("maps", "master").Resource(core.ConfigMaps, "default")
	c.Must(maps.Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m-"}, Data: map[string]string{"a": "b"}}, nil))
	secrets := as("secrets", "master").Resource(core.Secrets, "default")
	c.Must(secrets.Create(t.Context(), &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"hidden": "treasure"}}, nil))
	if err := as("missing", "master").Resource(core.Secrets, "default").Get(t.Context(), "none", nil); err == nil {
		t.Fatal("a missing secret was found")
	}
	if err := as("jane", "nobody").Resource(core.Pods, "default").List(t.Context(), nil); err == nil {
		t.Fatal("jane may list pods")
	}
	for _, media := range []string{"application/yaml", "application/vnd.kubernetes.protobuf"} {
		if err := as("jane "+media, "nobody").Do(t.Context(), http.MethodGet, "/api/v1/namespaces/default/pods", nil, nil, rest.Accept(media)); err == nil {
			t.Fatal("jane may list pods")
		}
	}
	if err := as("nobody", "forged").Do(t.Context(), http.MethodGet, "/secret-door", nil, nil); err == nil {
		t.Fatal("a forged token was taken")
	}
	c.Must(as("impersonator", "master").Do(t.Context(), http.MethodGet, "/api/v1/namespaces/default", nil, nil,
		rest.Header("Impersonate-User", "alice"), rest.Header("Impersonate-Group", "system:masters"), rest.Header("Audit-Id", "my-own-id")))
	if err := as("bound", "master").Do(t.Context(), http.MethodGet, "/api/v1/namespaces/default", nil, nil, rest.Header("Impersonate-User", "alice")); err == nil {
		t.Fatal("alice may read namespaces")
	}
	c.AwaitServiceAccount("default")
	ask := func(agent, method, path, body string, refused bool) {
		if err := as(agent, "master").Do(t.Context(), method, path, json.RawMessage(body), nil); (err != nil) != refused {
			t.Fatal(agent, err)
		}
	}
	ask("bad name", http.MethodPost, "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"BAD_NAME"}}`, true)
	ask("token", http.MethodPost, "/api/v1/namespaces/default/serviceaccounts/default/token", `{}`, false)
	ask("outdated", http.MethodGet, "/api/v1/endpoints", `null`, false)
	ask("named", http.MethodPost, "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"named"}}`, false)
	ask("odd", http.MethodPost, "/api/v1/namespaces/default/configmaps", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"odd"}}`, true)
	ask("discovery", http.MethodGet, "/apis/apps/v1", `null`, false)
	ask("options", http.MethodDelete, "/api/v1/namespaces/default/configmaps/named", `{"propagationPolicy":"Background"}`, false)
	c.Must(as("patch", "master").Resource(core.ConfigMaps, "default").Patch(t.Context(), "applied", types.ApplyYAMLPatchType,
		[]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\n"), nil, rest.Query("fieldManager", "m")))
	ask("pod", http.MethodPost, "/api/v1/namespaces/default/pods", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, false)
	ask("binding", http.MethodPost, "/api/v1/namespaces/default/pods/p/binding", `{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}`, false)
	ask("proxy", http.MethodPost, "/api/v1/namespaces/default/services/none/proxy/", `{}`, true)
	robot := c.TokenSecret("default", "robot", "default")
	if err := as("robot", string(robot.Data["token"])).Resource(core.Secrets, "default").Get(t.Context(), "none", nil); err == nil {
		t.Fatal("a missing secret was found")
	}
	stream, err := as("watcher", "master").Resource(core.Nodes, "").Watch(t.Context())
	c.Must(err)
	c.Must(stream.Close())
	c.Must(c.Stop()) // writes what is left
	one := func(agent string) audit.Event {
		t.Helper()
		found := servertest.AuditEvents(t, path, agent)
		if len(found) != 1 {
			t.Fatalf("%s: %d events: %+v", agent, len(found), found)
		}
		return found[0]
	}

	t.Run("request and response", func(t *testing.T) {
		e := one("maps")
		var asked, answered core.ConfigMap
		if err := json.Unmarshal(e.RequestObject, &asked); err != nil || asked.Data["a"] != "b" || asked.UID != "" {
			t.Errorf("%v %s", err, e.RequestObject)
		}
		if err := json.Unmarshal(e.ResponseObject, &answered); err != nil || answered.UID == "" || e.ObjectRef.Name != answered.Name ||
			len(answered.ManagedFields) > 0 {
			t.Errorf("%v %s, about %+v", err, e.ResponseObject, e.ObjectRef)
		}
		if e.Stage != audit.ResponseComplete || e.ResponseStatus.Code != 201 || e.Verb != "create" || e.User.Username != "root" || e.SourceIPs[0] != "127.0.0.1" {
			t.Errorf("%+v", e)
		}
		if e.Annotations["authorization.k8s.io/decision"] != "allow" {
			t.Errorf("annotations %v", e.Annotations)
		}
	})
	t.Run("metadata shows no secrets", func(t *testing.T) {
		if e := one("secrets"); e.RequestObject != nil || e.ResponseObject != nil || e.ObjectRef.Name != "s" || e.Level != audit.Metadata {
			t.Errorf("%+v", e)
		}
		if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "treasure") || strings.Contains(string(text), "forged") {
			t.Errorf("a secret is in the log: %v", err)
		}
	})
	t.Run("refusals say why", func(t *testing.T) {
		if e := one("missing"); e.ResponseStatus.Code != 404 || e.ResponseStatus.Reason != metav1.StatusReasonNotFound || e.ResponseStatus.Message == "" {
			t.Errorf("%+v", e.ResponseStatus)
		}
		for _, agent := range []string{"jane", "jane application/yaml", "jane application/vnd.kubernetes.protobuf"} {
			e := one(agent)
			if e.ResponseStatus.Code != 403 || e.Annotations["authorization.k8s.io/decision"] != "forbid" || e.ObjectRef.Resource != "pods" {
				t.Errorf("%s: %+v", agent, e)
			}
			if e.ResponseStatus.Reason != metav1.StatusReasonForbidden || !strings.Contains(e.ResponseStatus.Message, "jane") {
				t.Errorf("%s: %+v", agent, e.ResponseStatus)
			}
		}
	})
	t.Run("what is not made has a name too", func(t *testing.T) {
		if e := one("bad name"); e.ObjectRef.Name != "BAD_NAME" || e.ResponseStatus.Code != 422 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("objects are those that the server has read", func(t *testing.T) {
		for agent, want := range map[string]string{
			"named":   `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"named"}}`,
			"odd":     "", // it could not be decoded
			"options": `{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/__internal","propagationPolicy":"Background"}`,
			"patch":   `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"}}`,
		} {
			e := one(agent)
			if string(e.RequestObject) != want {
				t.Errorf("%s: %s", agent, e.RequestObject)
			}
			if agent == "patch" && e.ObjectRef.UID != "" { // a patch contains no UID
				t.Errorf("%+v", e.ObjectRef)
			}
		}
		if e := one("discovery"); !strings.Contains(string(e.ResponseObject), `"kind":"APIResourceList"`) || e.ObjectRef != nil {
			t.Errorf("discovery: %+v", e)
		}
	})
	t.Run("what is noted of a request", func(t *testing.T) {
		if e := one("token"); !strings.HasPrefix(e.Annotations["authentication.kubernetes.io/issued-credential-id"], "JTI=") {
			t.Errorf("a token: %v", e.Annotations)
		}
		if e := one("robot"); e.Annotations["authentication.k8s.io/legacy-token"] != "system:serviceaccount:default:default" ||
			e.Annotations["authentication.k8s.io/legacy-token-manual-secret"] != "robot" {
			t.Errorf("a token in a secret: %v", e.Annotations)
		}
		if e := one("binding"); e.ResponseStatus.Status != metav1.StatusSuccess || e.ResponseStatus.Code != 201 || e.ResponseObject != nil {
			t.Errorf("a binding: %+v", e)
		}
		if e := one("outdated"); e.Annotations["k8s.io/deprecated"] != "true" {
			t.Errorf("endpoints: %v", e.Annotations)
		}
	})
	t.Run("a stream that does not begin says why, at once", func(t *testing.T) {
		found := servertest.AuditEvents(t, path, "proxy")
		if len(found) != 2 || found[0].Stage != audit.ResponseStarted || found[0].ResponseStatus.Message == "" ||
			found[1].ResponseStatus.Message != found[0].ResponseStatus.Message {
			t.Fatalf("%+v", found)
		}
		if object := string(found[0].ResponseObject); !strings.Contains(object, `"kind":"Status"`) || !strings.Contains(object, `"code":503`) {
			t.Errorf("the answer is not kept: %s", object)
		}
	})
	t.Run("who did not get in", func(t *testing.T) {
		e := one("nobody")
		if e.Stage != audit.ResponseStarted || e.ResponseStatus.Code != 401 || e.ResponseStatus.Reason != metav1.StatusReasonUnauthorized || e.User.Username != "" {
			t.Errorf("%+v", e)
		}
	})
	t.Run("impersonation", func(t *testing.T) {
		if e := one("bound"); e.AuthenticationMetadata == nil || e.AuthenticationMetadata.ImpersonationConstraint != "impersonate:user-info" {
			t.Errorf("%+v", e)
		}
		if e := one("impersonator"); e.AuthenticationMetadata != nil || e.User.Username != "root" || e.ImpersonatedUser == nil ||
			e.ImpersonatedUser.Username != "alice" || e.AuditID != "my-own-id" {
			t.Errorf("%+v", e)
		}
	})
	t.Run("watches start and end", func(t *testing.T) {
		found := servertest.AuditEvents(t, path, "watcher")
		if len(found) != 2 || found[0].Stage != audit.ResponseStarted || found[1].Stage != audit.ResponseComplete || found[0].ResponseStatus.Code != 200 {
			t.Errorf("%+v", found)
		}
	})
}
