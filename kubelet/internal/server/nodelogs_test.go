package server

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"kctl/kubelet/internal/server/auth"
)

// Links among the logs may lead to other logs, but never out of their
// directory.
func TestLogFilesStayTogether(t *testing.T) {
	dir := t.TempDir()
	logs := filepath.Join(dir, "log")
	for path, content := range map[string]string{"log/pods/a/0.log": "lines", "secret": "secret"} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"absolute": filepath.Join(logs, "pods/a/0.log"), "relative": "pods/a/0.log", "directory": "pods",
		"out": filepath.Join(dir, "secret"), "up": "../secret", "twice": "up", "root": "/", "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(logs, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(logs, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(dir, "linked")
	if err := os.Symlink(logs, linked); err != nil {
		t.Fatal(err)
	}
	for _, top := range []string{logs, linked} {
		for _, name := range []string{"pods/a/0.log", "absolute", "relative", "directory/a/0.log"} {
			if data, err := fs.ReadFile(logFiles(top), name); err != nil || string(data) != "lines" {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
		for _, name := range []string{"out", "up", "twice", "root/etc/passwd", "../secret", "loop", "pipe", "none"} {
			if f, err := logFiles(top).Open(name); err == nil {
				t.Errorf("%s can be read: %v", name, f)
			}
		}
	}
	if _, err := logFiles(logs).Open("out"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link out of the directory: %v", err)
	}
}

func TestNodeLogsMayBeOff(t *testing.T) {
	n, _ := newNode(t)
	s := newServer(t, n, auth.Authentication{Anonymous: true})
	s.NodeLogs, s.engine = "", newEngine()
	s.routes(s.engine)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/logs/0.log", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Body.String() != "logs endpoint is disabled.\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}
