package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// binaries are the programs of a cluster: the module's folder and the command.
var binaries = map[string]string{
	"apiserver": "apiserver", "scheduler": "scheduler", "kubelet": "kubelet",
	"kctl": "kubectl", "pause": "kubectl", "demo": "kubectl", "balancer": "kubectl",
}

var build = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("KCTL_BIN"); dir != "" {
		return filepath.Abs(dir)
	}
	root := Root()
	dir := filepath.Join(root, "bin")
	for name, module := range binaries {
		cmd := exec.Command("go", "build", "-trimpath", "-tags=nomsgpack,grpcnotrace", "-ldflags=-s -w", "-o", filepath.Join(dir, name),
			"./cmd/"+name)
		cmd.Dir = filepath.Join(root, module)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return dir, nil
})

// Bin builds the programs, once in a test run, and returns their folder. If
// $KCTL_BIN is set, it is the folder, and nothing is built.
func Bin(t testing.TB) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Root is the top of the source tree.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	if filepath.IsAbs(file) {
		return filepath.Dir(filepath.Dir(filepath.Dir(file)))
	}
	// Because of -trimpath, the binary does not know the path of its source; but a
	// test starts in its package's folder.
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	panic("harness: the source tree with its go.work is not above the working directory")
}
