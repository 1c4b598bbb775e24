package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dropIns writes files into a directory; a name may include a folder.
func dropIns(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The rules are those of Kubernetes docs, "Kubelet Configuration Directory Merging".
func TestDropIns(t *testing.T) {
	dir := dropIns(t, map[string]string{
		"20-late.conf":     header + "maxPods: 22\nevictionHard: {nodefs.available: 7%}\nclusterDNS: [10.0.0.2]\n",
		"10-early.conf":    header + "maxPods: 11\nport: 11111\nauthentication: {webhook: {enabled: true}}\nsyncFrequency: 3m\nserializeImagePulls: false\n",
		"30-other.yaml":    "this is nobody's",
		"40/deeper.conf":   header + "podPidsLimit: 9007199254740993\n",
		"50-upstream.conf": header + "registerWithTaints: [{key: a, effect: NoSchedule}]\nproviderID: cloud://1\n",
	})
	c, err := load(t, header+`
maxPods: 1
serializeImagePulls: true
clusterDNS: [10.0.0.8, 10.0.0.9]
evictionHard: {memory.available: 1Gi, nodefs.available: 5%}
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: /ca}}
`, "--kubeconfig=/k", "--config-dir="+dir, "--sync-frequency=9m")
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxPods != 22 || c.Serving.Port != 11111 || c.Pulls.Serialize || c.PodPidsLimit != 9007199254740993 || c.ProviderID != "cloud://1" {
		t.Errorf("the later file does not count: %+v", c)
	}
	if !slices.Equal(c.ClusterDNS, []string{"10.0.0.2"}) || len(c.RegisterWithTaints) != 1 {
		t.Errorf("lists are not put in each other's place: %q, %v", c.ClusterDNS, c.RegisterWithTaints)
	}
	if hard := c.Eviction.Hard; len(hard) != 2 || hard["memory.available"] != "1Gi" || hard["nodefs.available"] != "7%" {
		t.Errorf("maps are not merged: %v", hard)
	}
	if !c.Serving.AuthenticationTokenWebhook || c.Serving.AnonymousAuth || c.Serving.ClientCAFile != "/ca" {
		t.Errorf("fields of fields are not merged: %+v", c)
	}
	if c.SyncFrequency.Minutes() != 9 {
		t.Errorf("a flag does not win: %s", c.SyncFrequency)
	}
	// Without a file, and with no drop-ins at all.
	if c, err = load(t, "", "--kubeconfig=/k", "--config-dir="+dir); err != nil || c.MaxPods != 22 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = load(t, "", "--kubeconfig=/k", "--config-dir="+t.TempDir()); err != nil || c.MaxPods != 110 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestBadDropIns(t *testing.T) {
	for content, want := range map[string]string{
		"maxPods: 1\n":                      "KubeletConfiguration is expected",
		header + "maxPod: 1\n":              `unknown field "maxPod"`,
		header + "maxPods: many\n":          "maxPods",
		header + "maxPods: 1\nmaxPods: 2\n": "already set",
		header + "memoryManagerPolicy: x\n": "memoryManagerPolicy: not supported",
		"{":                                 "neither YAML nor JSON",
	} {
		dir := dropIns(t, map[string]string{"a.conf": header, "b.conf": content})
		_, err := load(t, header, "--kubeconfig=/k", "--config-dir="+dir)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
	}
}
