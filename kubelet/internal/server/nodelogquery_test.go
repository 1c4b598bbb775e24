package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kctl/kubelet/internal/server/auth"
)

// Queries ask the journal for the services that it knows, and files for the others.
func TestNodeLogQueries(t *testing.T) {
	n, _ := newNode(t)
	s := newServer(t, n, auth.Authentication{Anonymous: true})
	programs := t.TempDir()
	journal := "#!/bin/sh\n[ \"$1\" = --field ] && { echo init.scope; echo kubelet.service; exit; }\necho journal: \"$@\"\n"
	if err := os.WriteFile(filepath.Join(programs, "journalctl"), []byte(journal), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	for path, content := range map[string]string{"quiet.log": "of quiet\n", "deep/deep.log": "of deep\n"} {
		path = filepath.Join(s.NodeLogs, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.NodeLogQueries, s.engine = true, newEngine()
	s.routes(s.engine)
	server := httptest.NewServer(s)
	defer server.Close()
	const asked = "journal: --utc --no-pager --output=short-precise --unit="
	for _, c := range []struct {
		query string
		code  int
		text  string // all of the answer, or "..." and its end
	}{
		{"/?query=kubelet", 200, asked + "kubelet\n"},
		{"?query=kubelet", 200, asked + "kubelet\n"},
		{"/?query=kubelet.service&query=init.scope&boot=-1&tailLines=3&pattern=a.*b&sinceTime=2026-11-29T01:00:00%2B01:00&untilTime=2026-11-29T00:00:01Z", 200,
			asked + "kubelet.service --unit=init.scope --since=@1795910400 --until=@1795910401 --lines=3 --grep=a.*b --boot=-1\n"},
		{"/?query=kubelet&query=quiet", 200, asked + "kubelet\nof quiet\n"},
		{"/?query=deep", 200, "of deep\n"},
		{"/?query=quiet.log", 200, "of quiet\n"},
		{"/?query=let", 200, "\nlog not found for let\n"},
		{"/?query=..", 200, "\nlog not found for ..\n"},
		{"/?query=quiet&tailLines=1", 200, "\noptions present and query resolved to log files for [quiet]\ntry without specifying options\n"},
		{"/?query=/deep/deep.log", 200, "of deep\n"},
		{"/?query=/deep", 200, "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n<a href=\"deep.log\">deep.log</a>\n</pre>\n"},
		{"/?query=deep/", 200, "...<a href=\"deep.log\">deep.log</a>\n</pre>\n"},
		{"/?query=/", 200, "...</pre>\n"},
		{"/quiet.log?other=1", 200, "of quiet\n"},
		{"/?query", 400, "...may not be empty\n"},
		{"/?query=%20&tailLines=x", 400, "...invalid syntax]\n"},
		{"/?query=kubelet&sinceTime=today", 400, "...invalid time format\n"},
		{"/?query=kubelet&tailLines=y&boot=x&untilTime=now&sinceTime=today", 400,
			`[sinceTime: Invalid value: "today": invalid time format, untilTime: Invalid value: "now": invalid time format, ` +
				`boot: Invalid value: "x": strconv.Atoi: parsing "x": invalid syntax, tailLines: Invalid value: "y": strconv.Atoi: parsing "y": invalid syntax]` + "\n"},
		{"/quiet.log?query=kubelet", 406, "path not allowed in query mode\n"},
		{"/?boot=0", 406, "query: Required value: cannot be empty with options\n"},
		{"/?query=--file&query=a;b", 406, "...input contains unsupported characters, or more than 256\n"},
		{"/?query=a&query=b&query=c&query=d&query=e", 406, "query: Too many: 5: must have at most 4 items\n"},
		{"/?query=/missing.log", 406, "...missing.log: no such file or directory\n"},
		{"/?query=/../../etc/passwd", 406, ".../etc: no such file or directory\n"},
		{"/?query=/a&query=b", 406, "...cannot specify a file and service\n"},
		{"/?query=/a&query=/b", 406, "...cannot specify more than one file\n"},
		{"/?query=/a&pattern=b", 406, "...cannot specify file with options\n"},
		{"/?query=a&boot=1", 406, "...must be less than 1\n"},
		{"/?query=a&tailLines=100001", 406, "...must be between 0 and 100000, inclusive\n"},
		{"/?query=a&pattern=(", 406, "...missing closing ): `(`\n"},
		{"/?query=a&sinceTime=2026-11-29T00:00:01Z&untilTime=2026-11-29T00:00:00Z", 406, "...must be after `sinceTime`\n"},
	} {
		code, text := get(t, server, "/logs"+strings.ReplaceAll(c.query, ";", "%3B"))
		end, open := strings.CutPrefix(c.text, "...")
		if code != c.code || !open && text != c.text || !strings.HasSuffix(text, end) {
			t.Errorf("%s: %d %q, want %d %q", c.query, code, text, c.code, c.text)
		}
	}
	for accepted, want := range map[string]string{"gzip": "gzip", "identity": "", "br, gzip": ""} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/logs/?query=deep", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Encoding", accepted)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if got := response.Header.Get("Content-Encoding"); got != want {
			t.Errorf("to who accepts %s, the answer is encoded as %q, want %q", accepted, got, want)
		}
	}
	s.NodeLogQueries = false
	if code, text := get(t, server, "/logs/?query=kubelet"); code != 200 || !strings.Contains(text, `<a href="quiet.log">`) {
		t.Errorf("where queries are off: %d %q", code, text)
	}
}
