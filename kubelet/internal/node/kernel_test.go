package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckKernel(t *testing.T) {
	dir := t.TempDir()
	write := func(name, value string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := CheckKernel(dir); err == nil || !strings.Contains(err.Error(), "vm/overcommit_memory") {
		t.Errorf("a machine without settings: %v", err)
	}
	for _, setting := range kernelSettings {
		write(setting.name, setting.want)
	}
	if err := CheckKernel(dir); err != nil {
		t.Error(err)
	}
	write("kernel/panic", "0")
	write("vm/overcommit_memory", "2")
	if err := CheckKernel(dir); err == nil || err.Error() != "vm.overcommit_memory is 2 and has to be 1\nkernel.panic is 0 and has to be 10" {
		t.Errorf("other settings: %v", err)
	}
}
