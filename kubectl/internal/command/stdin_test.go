package command

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/preferences"
)

// When objects are read from standard input, a credential plugin that wants to
// read it, too, is not run.
func TestStdinIsNotForPlugins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	content := `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}],
  users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: echo, interactiveMode: Always}}}]}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(preferences.Environment, preferences.Off)
	for line, taken := range map[string]bool{
		"apply -f -": true, "replace -f - --force": true, "set env deployment/a -": true, "patch cm a --patch-file=-": true, "get -f -": true, "get cm": false,
	} {
		c := frame.New(frame.Streams{In: strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`), Out: io.Discard, Err: io.Discard},
			clock.RealClock{})
		run(t.Context(), c, append([]string{"--kubeconfig", file, "--cache-dir", t.TempDir()}, strings.Fields(line)...))
		target, err := c.Kubeconfig()
		if err != nil || target.Client.ExecProvider.StdinUnavailable != taken {
			t.Errorf("%s: standard input is kept from the plugin: %v, want %v (%v)", line, !taken, taken, err)
		}
	}
}
