package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The commands that doctor advises can be pasted into a shell, whatever
// directory `kctl up` was given.
func TestDoctorQuotesDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my cluster")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "admin.kubeconfig")
	for name, content := range map[string]string{
		file: "apiVersion: v1\nkind: Config\ncurrent-context: c\n" +
			"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c}}]\n",
		filepath.Join(dir, "cluster.json"): `{"nodeName": "n", "port": 1}`,
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := kctl(t, "", "", "doctor", "--kubeconfig", file)
	if out := c.out.String(); c.code != 1 || !strings.Contains(out, "`kctl up --dir '"+dir+"'` starts programs that are not running") {
		t.Errorf("exit code %d:\n%s%s", c.code, out, c.err.String())
	}
}

func TestDoctorOnAJoinedNode(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "kubelet.kubeconfig")
	for _, there := range []bool{false, true} {
		if there {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if c := kctl(t, "", "", "doctor", "--dir", dir); strings.Contains(c.out.String(), file) != there {
			t.Errorf("with the kubelet's kubeconfig %t:\n%s", there, c.out.String())
		}
	}
}
