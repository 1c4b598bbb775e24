// Package install_test checks what is installed on machines: systemd units,
// Debian packages, and how the programs behave as services, even when started
// in the wrong order or with the wrong files.
package install_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kctl/test/harness"
)

// exposure is the highest score that `systemd-analyze security` may give each
// unit, in tenths; docs/install.md gives the same figures.
var exposure = map[string]int{"kctl-etcd": 12, "kctl-apiserver": 12, "kctl-scheduler": 12, "kctl-kubelet": 52, "kctl-balancer": 12, "kctl-renew": 14,
	"kctl-backup": 24}

// scripts read settings of the units that start them.
var scripts = map[string]string{"kctl-backup": "backup.sh"}

// installed is a tree as `make install` makes it.
func installed(t *testing.T, root, prefix string) {
	t.Helper()
	run(t, filepath.Join(harness.Root(), "deploy/packages/install.sh"), harness.Bin(t), root, prefix, "kctl", "kctl-control-plane", "kctl-node")
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestUnits(t *testing.T) {
	root := t.TempDir()
	installed(t, root, root+"/usr") // so that the programs are where the units expect them
	units := filepath.Join(root, root, "usr/lib/systemd/system")
	if err := os.Symlink(filepath.Join(root, root, "usr"), filepath.Join(root, "usr")); err != nil {
		t.Fatal(err)
	}
	doc := read(t, filepath.Join(harness.Root(), "docs/install.md"))
	for _, timer := range []string{"kctl-renew.timer", "kctl-backup.timer"} {
		if out := run(t, "systemd-analyze", "verify", "--man=no", filepath.Join(units, timer)); strings.Contains(out, "kctl") {
			t.Errorf("systemd-analyze verify:\n%s", out)
		}
	}
	for name, most := range exposure {
		file := filepath.Join(units, name+".service")
		t.Run(name, func(t *testing.T) {
			if out := run(t, "systemd-analyze", "verify", "--man=no", file); strings.Contains(out, name) {
				t.Errorf("systemd-analyze verify:\n%s", out)
			}
			out := run(t, "systemd-analyze", "security", "--no-pager", "--offline=true", fmt.Sprintf("--threshold=%d", most), file)
			if want := fmt.Sprintf("| `%s` | %d.%d |", name, most/10, most%10); !strings.Contains(doc, want) {
				t.Errorf("docs/install.md has no line with %q", want)
			}
			if line := out[strings.LastIndex(out, "→"):]; !strings.Contains(line, fmt.Sprintf("%d.%d", most/10, most%10)) {
				t.Errorf("better than the figure that is held: %s", line)
			}
			var script string
			if name := scripts[name]; name != "" {
				script = read(t, filepath.Join(root, root, "usr/lib/kctl", name))
			}
			settings(t, read(t, file), script, read(t, filepath.Join(root, "etc/default", name)))
		})
	}
}

var (
	setting  = regexp.MustCompile(`(?m)^#([A-Z_]+)=`)
	variable = regexp.MustCompile(`\$\{?([A-Z_]+)`)
)

// settings checks that a file of settings lists what its unit reads, and nothing that
// neither it nor its script does, and sets nothing by itself.
func settings(t *testing.T, unit, script, file string) {
	t.Helper()
	known := map[string]bool{"CREDENTIALS_DIRECTORY": true, "JOIN_FLAGS": true} // from systemd, and from the drop-in of kctl join
	for _, m := range setting.FindAllStringSubmatch(file, -1) {
		known[m[1]] = true
		// etcd and etcdctl read these variables themselves.
		if !strings.HasPrefix(m[1], "ETCD") && !regexp.MustCompile(`\$\{?`+m[1]+`\b`).MatchString(unit+script) {
			t.Errorf("the unit does not read %s, which its file of settings offers", m[1])
		}
	}
	for line := range strings.SplitSeq(unit, "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, m := range variable.FindAllStringSubmatch(line, -1) {
			if !known[m[1]] {
				t.Errorf("the file of settings does not offer %s, which the unit reads", m[1])
			}
		}
	}
	for line := range strings.SplitSeq(file, "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			t.Errorf("the file of settings sets something: %s", line)
		}
	}
}

func TestInstall(t *testing.T) {
	root := t.TempDir()
	installed(t, root, "/usr/local")
	unit := read(t, filepath.Join(root, "usr/local/lib/systemd/system/kctl-apiserver.service"))
	if !strings.Contains(unit, "ExecStart=/usr/local/lib/kctl/apiserver ") || strings.Contains(unit, "/usr/lib/kctl") {
		t.Errorf("the unit does not start what was installed:\n%s", unit)
	}
	for _, program := range []string{"bin/kctl", "lib/kctl/apiserver", "lib/kctl/scheduler", "lib/kctl/kubelet", "lib/kctl/balancer"} {
		if info, err := os.Stat(filepath.Join(root, "usr/local", program)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", program, info, err)
		}
	}
	changed := filepath.Join(root, "etc/default/kctl-kubelet")
	if err := os.WriteFile(changed, []byte("KUBELET_FLAGS=-v=4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	installed(t, root, "/usr/local")
	if got := read(t, changed); got != "KUBELET_FLAGS=-v=4\n" {
		t.Errorf("installing again wrote over the administrator's settings: %q", got)
	}
}
