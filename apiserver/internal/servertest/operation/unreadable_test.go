package operation

import (
	"context"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// TestAnObjectThatCannotBeRead: a server starts, is ready and goes on whatever
// is stored for one resource; it says which resource is affected, and a user
// with the permission can delete the object.
func TestAnObjectThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := startIn(t, dir)
	const secrets, widgets = "/api/v1/namespaces/default/secrets", "/apis/broken.test/v1/widgets"
	c.Must(c.Root().Resource(core.Secrets, "default").Create(t.Context(), &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: "good"}}, nil))
	for key, value := range map[string]string{
		"secrets/default/bad": "k8s:enc:aesgcm:v1:lost:x", "apiextensions.k8s.io/customresourcedefinitions/widgets.broken.test": "{",
	} {
		if _, err := c.Server.Etcd().Put(t.Context(), "/registry/"+key, value); err != nil {
			t.Fatal(err)
		}
	}
	c.Must(c.Stop())

	c = startIn(t, dir)
	get := func(path string, code int, words string) {
		t.Helper()
		if answer, text := c.Ask(http.MethodGet, path, nil, nil); answer.StatusCode != code || !strings.Contains(string(text), words) {
			t.Errorf("%s: %d %s", path, answer.StatusCode, text)
		}
	}
	get("/readyz?verbose", 200, "[+]storage ok, but held back, because a stored value cannot be read: apiextensions.k8s.io/customresourcedefinitions, secrets\n")
	get("/metrics", 200, "\napiserver_storage_held_back_resources 2\n")
	get(secrets, 500, `"StorageReadError"`)
	get(secrets+"?watch=1", 429, "secrets: held back: ")
	get(secrets+"/good", 200, `"good"`)
	get(widgets, 503, "definitions of custom resources have not been read yet") // and not 404, as if there were none
	c.AwaitServiceAccount("default")
	c.Created("default", &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: core.PodSpec{Containers: []core.Container{{Name: "c", Image: "i"}}}})

	c.Bind("deleters", "deleter", rbacv1.Subject{Kind: "User", Name: "jane"})
	allow := func(verbs ...string) {
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "deleter"},
			Rules:      []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{""}, Resources: []string{"secrets"}}},
		}
		roles := c.Root().Resource(core.ClusterRoles, "")
		if roles.Update(t.Context(), "deleter", role, nil) != nil {
			c.Must(roles.Create(t.Context(), role, nil))
		}
	}
	unsafely := func() (int, string) {
		answer, text := c.Request(http.MethodDelete, secrets+"/bad?ignoreStoreReadErrorWithClusterBreakingPotential=true",
			map[string]string{"Authorization": "Bearer nobody"}, "")
		return answer.StatusCode, text
	}
	allow("delete")
	c.Until("who may delete may not do so unsafely", func(context.Context) bool {
		code, text := unsafely()
		return code == 403 && strings.Contains(text, `cannot unsafe-delete-ignore-read-errors resource \"secrets\"`)
	})
	allow("delete", "unsafe-delete-ignore-read-errors")
	c.Until("who may both deletes it", func(context.Context) bool {
		code, text := unsafely()
		return code == 200 && strings.Contains(text, `"details":{"name":"bad","kind":"Secret"}`)
	})
	c.Until("secrets are watched again", func(context.Context) bool {
		answer, _ := c.Ask(http.MethodGet, secrets+"?watch=1&timeoutSeconds=1", nil, nil)
		return answer.StatusCode == 200
	})
	get(secrets, 200, `"good"`)
	get("/readyz?verbose", 200, "cannot be read: apiextensions.k8s.io/customresourcedefinitions\n")
}
