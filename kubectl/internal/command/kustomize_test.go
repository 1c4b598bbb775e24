package command

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func kustomization(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestKustomizeWrites(t *testing.T) {
	dir := kustomization(t, map[string]string{
		"kustomization.yaml": "namePrefix: x-\nresources: [all.yaml]\n",
		"all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: two}\n" +
			"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: c}\n",
	})
	all := kctl(t, "", "", "kustomize", dir)
	all.want(t, 0)
	if got := strings.Count(all.out.String(), "name: x-"); got != 3 {
		t.Errorf("%d objects in\n%s", got, all.out.String())
	}
	out := t.TempDir()
	kctl(t, "", "", "kustomize", dir, "-o", out).want(t, 0)
	for _, name := range []string{"default_v1_configmap_x-a.yaml", "two_v1_configmap_x-b.yaml", "rbac.authorization.k8s.io_v1_clusterrole_x-c.yaml"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
	file := filepath.Join(out, "all")
	kctl(t, "", "", "kustomize", dir, "-o", file).want(t, 0)
	if written, err := os.ReadFile(file); err != nil || string(written) != all.out.String() {
		t.Errorf("%v, %s", err, written)
	}
	kctl(t, "", "", "kustomize", dir, "--enable-helm").want(t, 1, "kctl runs no helm")
}

// A name that is a path creates no file elsewhere.
func TestKustomizeWritesNowhereElse(t *testing.T) {
	dir := kustomization(t, map[string]string{
		"kustomization.yaml": "resources: [all.yaml]\n",
		"all.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ../../elsewhere/x}\n",
	})
	top := t.TempDir()
	out := filepath.Join(top, "a")
	for _, d := range []string{out, filepath.Join(top, "elsewhere"), filepath.Join(out, "v1_configmap_..")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	kctl(t, "", "", "kustomize", dir, "-o", out).want(t, 1, "no file can be named after")
	if found, err := os.ReadDir(filepath.Join(top, "elsewhere")); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// If a kustomization can't be built, nothing is sent.
func TestBrokenKustomization(t *testing.T) {
	host := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })
	dir := kustomization(t, map[string]string{
		"kustomization.yaml": "resources: [pod.yaml, none.yaml]\n",
		"pod.yaml":           "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n",
	})
	for _, verb := range []string{"apply", "create", "delete", "replace", "get", "describe"} {
		kctl(t, host, "", verb, "-k", dir).want(t, 1, "none.yaml")
	}
	kctl(t, host, "", "diff", "-k", dir).want(t, 2, "none.yaml")
}

func TestErrorsSayTheKustomization(t *testing.T) {
	dir := kustomization(t, map[string]string{
		"kustomization.yaml": "namePrefix: x-\nresources: [pod.yaml]\n",
		"pod.yaml":           "apiVersion: v1\nkind: Pod\nmetadata: {name: y}\n",
	})
	host := serve(t, http.NotFound)
	kctl(t, host, "", "create", "-k", dir).want(t, 1, "error when creating \""+dir+"\"")
}

// The hashes equal kubectl's.
func TestAppendHash(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("binary", []byte{0xff, 0}, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"configmap a": "configmap/a-586ff7h6km",
		"configmap a --from-literal=b=c --from-file=binary":                "configmap/a-26bg5tft4f",
		"secret generic a --from-literal=b=c --type=x":                     "secret/a-htd5k4f79m",
		"secret docker-registry a --docker-username=u --docker-password=p": "secret/a-8d2m2dg7df",
	} {
		c := kctl(t, "", "", append(strings.Fields("create "+args), "--append-hash", "--dry-run=client", "-o", "name")...)
		c.want(t, 0)
		if got := strings.TrimSpace(c.out.String()); got != want {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
}
