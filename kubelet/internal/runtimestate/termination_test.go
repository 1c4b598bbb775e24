package runtimestate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestTerminationMessage(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(write("secret", "the node's"), link); err != nil {
		t.Fatal(err)
	}
	log := write("log", "t stdout F one\nt stdout P two and\nt stderr F  a half\nbroken\nt stdout F not yet wr")
	for _, c := range []struct {
		name, file, policy, message string
		exit                        int32
		want                        string
	}{
		{"file", write("a", "done"), "File", "", 0, "done"},
		{"beside the runtime's", write("b", "done"), "File", "runc said", 1, "runc said: done"},
		{"long file", write("c", strings.Repeat("x", 5000)+"end"), "File", "", 0, strings.Repeat("x", maxMessageBytes-3) + "end"},
		{"empty file", write("d", ""), "File", "", 1, ""},
		{"no file", filepath.Join(dir, "none"), "File", "", 1, ""},
		{"fall back", write("e", ""), "FallbackToLogsOnError", "", 1, "one\ntwo and a half\n"},
		{"no need to fall back", write("f", "said"), "FallbackToLogsOnError", "", 1, "said"},
		{"success does not fall back", write("g", ""), "FallbackToLogsOnError", "", 0, ""},
		{"link out of the container", link, "File", "", 0, "Error on reading termination log " + link + ": open " + link + ": not a regular file"},
	} {
		got := withTerminationMessage(t.Context(), &runtimeapi.ContainerStatus{
			ExitCode:    c.exit,
			Message:     c.message,
			LogPath:     log,
			Mounts:      []*runtimeapi.Mount{{ContainerPath: "/other", HostPath: log}, {ContainerPath: "/msg", HostPath: c.file}},
			Annotations: map[string]string{annotationTerminationMessagePath: "/msg", annotationTerminationPolicy: c.policy},
		})
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
