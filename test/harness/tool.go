package harness

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Tool is a third-party program that long tests build from the Go module proxy,
// with the dependencies of its own go.mod and go.sum.
type Tool struct {
	Module, Version string
	Sum             string // the module's, as in go.sum
	Package         string // "./cmd/…"
	Tags            string // build tags
}

// Compose is Docker's Compose v2, a plugin of the docker command.
var Compose = Tool{
	Module:  "github.com/docker/compose/v2",
	Version: "v2.40.3",
	Sum:     "h1:XeYkQu1svDtyfZPv5nTwFryQ25ZJMkIlc4pz9HalMPI=",
	Package: "./cmd",
}

// Helm installs charts.
var Helm = Tool{
	Module:  "helm.sh/helm/v3",
	Version: "v3.22.0",
	Sum:     "h1:n1if5iQgHYsujPAcO5oonH/KiSNUmqmUF0iGVjSF3AU=",
	Package: "./cmd/helm",
}

// Build builds the program unless it is built already, and returns its path.
func (p Tool) Build(t testing.TB) string {
	t.Helper()
	out := filepath.Join(Root(), "build", "tools", filepath.Base(filepath.Dir(p.Module))+"-"+filepath.Base(p.Package)+"-"+p.Version)
	if _, err := os.Stat(out); err == nil {
		return out
	}
	// Outside our modules, whose requirements would change its dependencies.
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", p.Module+"@"+p.Version)
	download.Dir, download.Stderr = t.TempDir(), os.Stderr
	download.Env = append(os.Environ(), "GOWORK=off")
	var module struct{ Dir, Sum, Error string }
	answer, err := download.Output()
	if parsed := json.Unmarshal(answer, &module); err != nil || parsed != nil || module.Sum != p.Sum {
		t.Fatalf("%s@%s: %v, %v: %s (sum %q, want %q)", p.Module, p.Version, err, parsed, module.Error, module.Sum, p.Sum)
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags="+p.Tags, "-ldflags=-s -w", "-o", out+".new", p.Package)
	build.Dir, build.Env = module.Dir, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", p.Package, err, text)
	}
	if err := os.Rename(out+".new", out); err != nil { // so a half-written file never has this name
		t.Fatal(err)
	}
	return out
}
