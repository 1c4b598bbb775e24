package loglinks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogLinksGoWithTheirLogs(t *testing.T) {
	logs := filepath.Join(t.TempDir(), "pods")
	links := Directory(logs)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(RemoveAll(logs)) // none exist yet
	must(os.MkdirAll(logs, 0o755))
	must(os.MkdirAll(links, 0o755))
	must(os.WriteFile(filepath.Join(logs, "0.log"), nil, 0o600))
	link := func(pod, target string) string {
		t.Helper()
		at := Path(logs, "ns", pod, "c", "id")
		must(os.Symlink(target, at))
		return filepath.Base(at)
	}
	link("gone", filepath.Join(logs, "none.log"))
	link("other", filepath.Join(logs, "none.log"))
	elsewhere, there := link("elsewhere", filepath.Join(links, "none.log")), link("there", filepath.Join(logs, "0.log"))
	must(os.WriteFile(filepath.Join(links, "gone_ns_file"), nil, 0o600))
	left := func() string {
		t.Helper()
		entries, err := os.ReadDir(links)
		must(err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return strings.Join(names, " ")
	}
	must(RemovePod(logs, "ns", "gone"))
	if got, want := left(), strings.Join([]string{elsewhere, "gone_ns_file", "other_ns_c-id.log", there}, " "); got != want {
		t.Errorf("after a pod ended there is %q, want %q", got, want)
	}
	must(RemoveAll(logs))
	if got, want := left(), strings.Join([]string{elsewhere, "gone_ns_file", there}, " "); got != want {
		t.Errorf("after a round there is %q, want %q", got, want)
	}
}

func TestLogLinksHaveNamesThatFilesMayHave(t *testing.T) {
	pod := strings.Repeat("p", 253)
	dir, name := filepath.Split(Path("/var/log/pods/", "namespace", pod, "c", "id"))
	if dir != "/var/log/containers/" || len(name) > longestName || !strings.HasPrefix(name, pod[:200]) || !strings.HasSuffix(name, ".log") {
		t.Errorf("%s in %s", name, dir)
	}
}
