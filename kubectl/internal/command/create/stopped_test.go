package create

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
)

// Ctrl-C ends a command that asks the server what it is to make an object of.
func TestStoppedWhileItAsks(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // where what servers serve is remembered
	for _, line := range []string{"job j --from=cronjob/c", "role r --verb=get --resource=pods", "clusterrole r --verb=get --resource=pods"} {
		ctx, cancel := context.WithCancel(t.Context())
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			cancel()
			http.NotFound(w, r)
		}))
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		content := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '" + server.URL +
			"'}}]\ncontexts: [{name: c, context: {cluster: c}}]\n"
		if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("KUBECONFIG", kubeconfig)
		cmd := New(frame.New(frame.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, clock.RealClock{}))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(line))
		if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", line, err)
		}
		server.Close()
		cancel()
	}
}
