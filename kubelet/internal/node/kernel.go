package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kernelSettings are those that upstream's kubelet requires: the kernel
// overcommits memory and kills rather than panics when there is none left,
// reboots when it panics, and allows root enough keys for every container's
// session.
var kernelSettings = []struct{ name, want string }{
	{"vm/overcommit_memory", "1"}, {"vm/panic_on_oom", "0"},
	{"kernel/panic", "10"}, {"kernel/panic_on_oops", "1"},
	{"kernel/keys/root_maxkeys", "1000000"}, {"kernel/keys/root_maxbytes", "25000000"},
}

// CheckKernel says which of the kernel's settings below dir, /proc/sys, differ
// (KubeletConfiguration v1beta1, protectKernelDefaults).
func CheckKernel(dir string) error {
	var wrong []error
	for _, setting := range kernelSettings {
		data, err := os.ReadFile(filepath.Join(dir, setting.name))
		if err != nil {
			wrong = append(wrong, fmt.Errorf("kernel setting: %w", err))
			continue
		}
		if is := strings.TrimSpace(string(data)); is != setting.want {
			wrong = append(wrong, fmt.Errorf("%s is %s and has to be %s", strings.ReplaceAll(setting.name, "/", "."), is, setting.want))
		}
	}
	return errors.Join(wrong...)
}
