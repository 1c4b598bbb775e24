package operations_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

// encryption writes an encryption configuration with these keys, in this order.
func encryption(t *testing.T, file string, keys ...string) {
	t.Helper()
	var list []string
	for _, key := range keys {
		secret := map[string]string{"key1": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "key2": "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="}[key]
		list = append(list, fmt.Sprintf("{name: %s, secret: %s}", key, secret))
	}
	content := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n" +
		"  providers: [{secretbox: {keys: [" + strings.Join(list, ", ") + "]}}, {identity: {}}]\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestEncryptionKeyRotation replaces a key as docs/operations.md says.
func TestEncryptionKeyRotation(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	encryption(t, file, "key1")
	s := harness.StartServer(t, "--encryption-provider-config="+file)
	const secrets = 20
	for i := range secrets {
		s.MustShell(fmt.Sprintf("kctl create secret generic s-%d --from-literal=word=treasure", i))
	}
	sealed := func(key string) int {
		t.Helper()
		values := s.MustShell("etcdctl get --prefix /registry/secrets/ --print-value-only", "ETCDCTL_ENDPOINTS=unix://"+s.Dir+"/etcd/etcd.sock")
		if strings.Contains(values, "treasure") {
			t.Error("a secret is not encrypted")
		}
		return strings.Count(values, "k8s:enc:secretbox:v1:"+key+":")
	}
	if n := sealed("key1"); n < secrets {
		t.Fatalf("%d secrets are sealed by the first key", n)
	}
	use := func(keys ...string) {
		encryption(t, file, keys...)
		s.Stop()
		s.Start()
	}
	use("key1", "key2") // every server can read what the new key will encrypt
	use("key2", "key1")
	s.MustShell(harness.OpenPage(t, "docs/operations.md").Take(t, "Rotating an encryption key"))
	if old, now := sealed("key1"), sealed("key2"); old != 0 || now < secrets {
		t.Errorf("%d secrets are sealed by the old key, %d by the new one", old, now)
	}
	use("key2")
	list, err := s.Client().CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range list.Items {
		if string(secret.Data["word"]) != "treasure" {
			t.Errorf("%s cannot be read without the old key", secret.Name)
		}
	}
	if len(list.Items) != secrets {
		t.Errorf("%d secrets are there", len(list.Items))
	}
}
