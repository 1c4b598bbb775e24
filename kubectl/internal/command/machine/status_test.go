package machine

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
)

// With the kubeconfig of a cluster of kctl up, status is of that cluster, as doctor is.
func TestStatusOfTheKubeconfigsCluster(t *testing.T) {
	dir := aClustersKubeconfig(t)
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

// aClustersKubeconfig makes a directory as kctl up does, and its kubeconfig the one that is used.
func aClustersKubeconfig(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for file, content := range map[string]string{
		"cluster.json": `{"nodeName": "n", "port": 1}`,
		"admin.kubeconfig": "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: " +
			"c, context: {cluster: c}}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "admin.kubeconfig"))
	return dir
}

// With that kubeconfig, up does not begin another cluster, and down does not take another away.
func TestUpAndDownOfTheKubeconfigsCluster(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	dir := aClustersKubeconfig(t)
	c := frame.New(frame.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, clock.RealClock{})
	stopped, cancel := context.WithCancel(t.Context())
	cancel() // whatever they are about, nothing happens to it
	for want, cmd := range map[string]*cobra.Command{
		"this cluster's port is 1 and can't be changed":   newUp(c),
		"the kubeconfig belongs to the cluster in " + dir: newDown(c),
	} {
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		cmd.SetArgs([]string{})
		if cmd.Name() == "up" {
			cmd.SetArgs([]string{"--port=2", "--without=registry,containerd,apiserver,scheduler,kubelet"})
		}
		if err := cmd.ExecuteContext(stopped); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", cmd.Name(), err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "cluster.json")); err != nil {
		t.Error(err)
	}
}
