package command

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// serveNamed is a server that has pods and nodes with a name that a real server
// would not accept.
func serveNamed(t *testing.T, name string) string {
	t.Helper()
	quoted, err := json.Marshal(name)
	if err != nil {
		t.Fatal(err)
	}
	item := fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%s,"namespace":"default","uid":"u","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}},
		"spec":{"containers":[{"name":"a"},{"name":%s}]}}`, quoted, quoted)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		of, last := r.URL.Path, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		switch {
		case strings.HasSuffix(of, "/log"):
			fmt.Fprintln(w, "said")
		case r.Method == http.MethodPost:
			_, _ = io.Copy(w, r.Body)
		case last == "new":
			http.NotFound(w, r)
		case last == "pods", last == "nodes":
			fmt.Fprintf(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[%s]}`, item)
		case strings.HasSuffix(of, "s"):
			fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`)
		default:
			fmt.Fprint(w, item)
		}
	})
}

// Names that a server makes up lead to no other files than those asked for.
func TestNamesThatArePaths(t *testing.T) {
	for _, c := range []struct {
		name, stdin string
		args        []string
	}{
		{"../../../escaped", "", []string{"cluster-info", "dump", "--output-directory=DIR/inner/dump"}},
		{"x/..../..../escaped", "apiVersion: v1\nkind: Pod\nmetadata: {name: new}\n",
			[]string{"diff", "-f", "-", "--prune", "-l", "!none", "--prune-allowlist=core/v1/Pod"}},
	} {
		dir := t.TempDir()
		inner := filepath.Join(dir, "inner")
		if err := os.Mkdir(inner, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", inner)
		for i := range c.args {
			c.args[i] = strings.Replace(c.args[i], "DIR", dir, 1)
		}
		kctl(t, serveNamed(t, c.name), c.stdin, c.args...)
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if strings.Contains(filepath.Base(path), "escaped") {
				t.Errorf("%v wrote %s", c.args, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Control characters in names, which roles' may contain anywhere, reach no
// terminal.
func TestNamesWithControlCharacters(t *testing.T) {
	host := serveNamed(t, "x\x1b]0;title\a")
	for _, args := range [][]string{
		{"get", "pods", "-o", "name"}, {"get", "nodes"}, {"wait", "pods", "--all", "--for=jsonpath={.metadata.uid}=u"},
		{"delete", "pods", "--all", "--dry-run=client"}, {"delete", "pods", "--all", "--dry-run=client", "-o", "name"},
		{"cordon", "x", "--dry-run=client"}, {"drain", "x", "--dry-run=client", "--force"}, {"label", "pods", "--all", "a=b", "--dry-run=client"},
		{"set", "env", "pods", "--all", "--list"}, {"logs", "-l", "a=b", "--prefix"}, {"attach", "x"}, {"exec", "x", "--", "ls"}, {"trace", "pod/x"},
	} {
		c := kctl(t, host, "", args...)
		if said := c.out.String() + c.err.String(); strings.ContainsAny(said, "\x1b\a") {
			t.Errorf("%v wrote %q", args, said)
		} else if !strings.Contains(said, "x^]0;title^") && !strings.Contains(said, `"x\x1b]0;title\a"`) {
			t.Errorf("%v shows no name: %q", args, said)
		}
	}
}
