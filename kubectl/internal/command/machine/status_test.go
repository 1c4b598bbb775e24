package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
)

// With the kubeconfig of a cluster of kctl up, status is of that cluster, as doctor is.
func TestStatusOfTheKubeconfigsCluster(t *testing.T) {
	dir := t.TempDir()
	for file, content := range map[string]string{
		"cluster.json":     `{"nodeName": "n", "port": 1}`,
		"admin.kubeconfig": "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c}}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "admin.kubeconfig"))
	elsewhere := filepath.Join(t.TempDir(), "other")
	for args, want := range map[string]string{"": "cluster in " + dir + ", node n", "--dir=" + elsewhere: "no cluster in " + elsewhere} {
		var out bytes.Buffer
		cmd := newStatus(frame.New(frame.Streams{In: strings.NewReader(""), Out: &out, Err: &out}, clock.RealClock{}))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.Execute(); err == nil || !strings.Contains(out.String(), want) {
			t.Errorf("%q: %v\n%s", args, err, &out)
		}
	}
}
