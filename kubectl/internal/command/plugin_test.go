package command

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/preferences"
)

// write puts empty files, which can be executed, into the only directory of the
// PATH.
func write(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	return dir
}

// krew installs a plugin whose verb has a dash, as view-secret, under a name that
// has an underscore instead, so that kubectl can distinguish it from two words.
func TestPluginOfWords(t *testing.T) {
	dir := write(t, "kubectl-view_secret", "kubectl-two-words", "kubectl-both", "kctl-both", "kubectl-create", "kubectl-create-widget")
	for line, want := range map[string]string{
		"view-secret a-b":     "kubectl-view_secret a-b",
		"view_secret -n a-b":  "kubectl-view_secret -n a-b",
		"view secret":         "",
		"two words three":     "kubectl-two-words three",
		"two-words":           "",
		"two -q words":        "",
		"both":                "kctl-both",
		"create widget a":     "kubectl-create-widget a",
		"create gadget":       "", // kctl's own verb
		"create -q widget":    "",
		"../both":             "",
		"create ../widget/..": "",
	} {
		args := strings.Fields(line)
		path, rest, found := plugin(args, leastWords(args))
		got := strings.Join(append([]string{strings.TrimPrefix(path, dir+"/")}, rest...), " ")
		if found != (want != "") || got != want {
			t.Errorf("%s: %q (found %v), want %q", line, got, found, want)
		}
	}
}

func TestPluginAfterFlags(t *testing.T) {
	t.Setenv(preferences.Environment, preferences.Off)
	write(t, "kubectl-hello", "kubectl-two-words")
	for line, want := range map[string]string{
		"-n default hello":     "error: flags cannot be placed before plugin name: -n\n",
		"-n default two words": "error: flags cannot be placed before plugin name: -n\n",
		"two -n default words": `error: unknown command "two" for "kctl"`, // its words end where flags begin
		"-n default nothing":   `error: unknown command "nothing" for "kctl"`,
	} {
		var stderr strings.Builder
		c := frame.New(frame.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &stderr}, clock.RealClock{})
		if code := run(t.Context(), c, strings.Fields(line)); code == 0 || !strings.HasPrefix(stderr.String(), want) {
			t.Errorf("%s: exit code %d, %q, want %q", line, code, &stderr, want)
		}
	}
}

func TestPluginList(t *testing.T) {
	dir := write(t, "kubectl-well", "kubectl-closed", "kubectl-get", "other")
	if err := os.Chmod(filepath.Join(dir, "kubectl-closed"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+dir) // twice, which overshadows nothing
	got := kctl(t, "", "", "plugin", "list", "--name-only")
	if want := "The following compatible plugins are available:\n\nkubectl-closed\nkubectl-get\nkubectl-well\n"; got.out.String() != want {
		t.Errorf("lists %q, want %q", &got.out, want)
	}
	lines := strings.Split(got.err.String(), "\n")
	want := []string{
		"  - warning: " + dir + "/kubectl-closed identified as a kctl plugin, but it is not executable",
		`  - warning: kubectl-get overwrites existing command: "kctl get"`,
		"error: 2 plugin warnings were found",
	}
	if !slices.Equal(lines[:min(3, len(lines))], want) {
		t.Errorf("warns of %q, want %q", lines, want)
	}
}
