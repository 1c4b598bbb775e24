package operation

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/config"
	"kctl/proto/core"
)

// encryptionBy is a configuration with these providers for secrets.
func encryptionBy(providers string) string {
	return "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers: [" + providers + "]\n"
}

const (
	oldKey = "{aescbc: {keys: [{name: old, secret: MDEyMzQ1Njc4OWFiY2RlZg==}]}}"
	newKey = "{secretbox: {keys: [{name: new, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}"
)

func TestEncryptionAtRest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var c *cluster
	file := filepath.Join(dir, "encryption.yaml")
	begin := func(providers string) *cluster {
		if err := os.WriteFile(file, []byte(encryptionBy(providers)), 0o600); err != nil {
			t.Fatal(err)
		}
		return startIn(t, dir, func(o *config.Options) { o.Encryption.File = file })
	}
	raw := func(kind, name string) string {
		t.Helper()
		answer, err := c.Server.Etcd().Get(t.Context(), "/registry/"+kind+"/default/"+name)
		if err != nil || len(answer.Kvs) != 1 {
			t.Fatalf("%s %s in etcd: %v %v", kind, name, answer, err)
		}
		return string(answer.Kvs[0].Value)
	}
	secret := &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"a": "treasure"}}
	read := func(c *cluster) *core.Secret {
		t.Helper()
		got := &core.Secret{}
		c.Must(c.Root().Resource(core.Secrets, "default").Get(t.Context(), "s", got))
		if string(got.Data["a"]) != "treasure" {
			t.Errorf("got %q", got.Data)
		}
		return got
	}

	c = begin("{identity: {}}")
	c.Must(c.Root().Resource(core.Secrets, "default").Create(t.Context(), secret, nil))
	if !strings.Contains(raw("secrets", "s"), `"Secret"`) {
		t.Error("identity changes values")
	}
	c.Must(c.Stop())

	c = begin(oldKey + ", {identity: {}}")
	got := read(c)
	c.Must(c.Root().Resource(core.Secrets, "default").Update(t.Context(), "s", got, nil))
	if value := raw("secrets", "s"); !strings.HasPrefix(value, "k8s:enc:aescbc:v1:old:") {
		t.Errorf("an update that changes nothing leaves it as it was: %.40q", value)
	}
	c.Must(c.Root().Resource(core.ConfigMaps, "default").Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, nil))
	if value := raw("configmaps", "m"); !strings.HasPrefix(value, "{") {
		t.Errorf("a config map is stored as %.40q", value)
	}
	c.Must(c.Stop())

	c = begin(newKey + "," + oldKey)
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/livez": 404} { // a restart brings no KMS plugin back
		if answer, text := c.Ask(http.MethodGet, path+"/kms-providers", nil, nil); answer.StatusCode != want {
			t.Errorf("%s/kms-providers: %d %s", path, answer.StatusCode, text)
		}
	}
	got = read(c)
	got.Labels = map[string]string{"a": "b"}
	c.Must(c.Root().Resource(core.Secrets, "default").Update(t.Context(), "s", got, nil))
	before := raw("secrets", "s")
	if !strings.HasPrefix(before, "k8s:enc:secretbox:v1:new:") || strings.Contains(before, "treasure") {
		t.Errorf("after the rotation: %.40q", before)
	}
	c.Must(c.Root().Resource(core.Secrets, "default").Update(t.Context(), "s", read(c), nil))
	if raw("secrets", "s") != before {
		t.Error("an update that changes nothing was written")
	}
}

// TestEncryptedCustomResources: a server that starts reads them before it knows
// their definitions, and is not disturbed by objects whose key is gone.
func TestEncryptedCustomResources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "encryption.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(encryptionBy(newKey), "secrets", "widgets.sealed.test", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func() *cluster { return startIn(t, dir, func(o *config.Options) { o.Encryption.File = file }) }
	c := begin()
	const definitions, widgets = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/sealed.test/v1/namespaces/default/widgets"
	send := func(path, body string) bool {
		answer, _ := c.Ask(http.MethodPost, path, http.Header{"Content-Type": {"application/json"}}, []byte(body))
		return answer.StatusCode == http.StatusCreated
	}
	const definition = `{"metadata":{"name":"widgets.sealed.test"},` +
		`"spec":{"group":"sealed.test","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},` +
		`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"text":{"type":"string"}}}}}]}}`
	if !send(definitions, definition) {
		t.Fatal("no definition")
	}
	c.Until("a widget can be made", func(context.Context) bool {
		return send(widgets, `{"apiVersion":"sealed.test/v1","kind":"Widget","metadata":{"name":"w"},"text":"treasure"}`)
	})
	answer, err := c.Server.Etcd().Get(t.Context(), "/registry/sealed.test/widgets/default/w")
	if err != nil || len(answer.Kvs) != 1 || !strings.HasPrefix(string(answer.Kvs[0].Value), "k8s:enc:") {
		t.Fatalf("stored as %v, %v", answer, err)
	}
	if _, err := c.Server.Etcd().Put(t.Context(), "/registry/gone.test/things/default/t", "k8s:enc:secretbox:v1:lost:x"); err != nil {
		t.Fatal(err)
	}
	c.Must(c.Stop())

	c = begin()
	c.Until("the widget is there again", func(context.Context) bool {
		answer, text := c.Ask(http.MethodGet, widgets+"/w", nil, nil)
		return answer.StatusCode == http.StatusOK && strings.Contains(string(text), "treasure")
	})
}
