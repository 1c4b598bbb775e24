package install_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kctl/proto/core"
	"kctl/test/harness"
)

// packages builds the Debian packages as for a release and returns their files.
func packages(t *testing.T, version, debian string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(harness.Root(), "deploy/packages/build.sh"), harness.Bin(t), version, dir)
	cmd.Env = append(os.Environ(), "COMPRESSION=none")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build packages: %v\n%s", err, out)
	}
	architecture := strings.TrimSpace(run(t, "dpkg", "--print-architecture"))
	files := map[string]string{}
	for _, name := range []string{"kctl", "kctl-control-plane", "kctl-etcd", "kctl-node"} {
		files[name] = filepath.Join(dir, name+"_"+debian+"_"+architecture+".deb")
		if _, err := os.Stat(files[name]); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestPackages(t *testing.T) {
	files := packages(t, "1.2.3-rc1", "1.2.3~rc1")
	depends := map[string][]string{
		"kctl":               {""},
		"kctl-control-plane": {"kctl (>= 1.2.3~rc1)", "systemd"},
		"kctl-etcd":          {""},
		"kctl-node":          {"kctl (>= 1.2.3~rc1)", "systemd", "containerd", "runc", "containernetworking-plugins", "iptables", "iproute2"},
	}
	has := map[string][]string{
		"kctl": {"./usr/bin/kctl", "./usr/share/doc/kctl/install.md"},
		"kctl-control-plane": {"./usr/lib/kctl/apiserver", "./usr/lib/kctl/scheduler", "./usr/lib/systemd/system/kctl-etcd.service", "./etc/default/kctl-etcd",
			"./usr/lib/systemd/system/kctl-renew.timer", "./usr/lib/systemd/system/kctl-backup.timer", "./usr/lib/kctl/backup.sh", "./usr/lib/kctl/renewed.sh",
			"./etc/default/kctl-backup"},
		"kctl-node": {"./usr/lib/kctl/kubelet", "./usr/lib/kctl/balancer", "./usr/lib/systemd/system/kctl-balancer.service",
			"./usr/lib/systemd/system/containerd.service.d/kctl.conf", "./etc/default/kctl-kubelet"},
	}
	owner := map[string]string{} // package by file
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			if got := run(t, "dpkg-deb", "--field", file, "Version"); got != "1.2.3~rc1\n" {
				t.Errorf("version %q", got)
			}
			got := strings.Split(strings.TrimSpace(run(t, "dpkg-deb", "--field", file, "Depends")), ", ")
			if !slices.Equal(got, depends[name]) {
				t.Errorf("depends on %q", got)
			}
			paths := content(t, file, owner, name)
			for _, want := range has[name] {
				if !slices.Contains(paths, want) {
					t.Errorf("%s is not in it", want)
				}
			}
			control(t, file, paths)
		})
	}
}

// content are the paths in a package. No file may be in two packages, or
// writable for anybody but root.
func content(t *testing.T, file string, owner map[string]string, name string) []string {
	t.Helper()
	var paths []string
	for line := range strings.Lines(run(t, "dpkg-deb", "--contents", file)) {
		fields := strings.Fields(line)
		mode, path := fields[0], fields[5]
		if fields[1] != "root/root" || mode[5] == 'w' || mode[8] == 'w' {
			t.Errorf("not only root may write it: %s", line)
		}
		if strings.HasSuffix(path, "/") {
			continue
		}
		if other := owner[path]; other != "" {
			t.Errorf("%s is in %s too", path, other)
		}
		owner[path] = name
		paths = append(paths, path)
	}
	return paths
}

// control checks what dpkg uses: scripts, configuration files, checksums.
func control(t *testing.T, file string, paths []string) {
	t.Helper()
	dir := t.TempDir()
	run(t, "dpkg-deb", "--control", file, dir)
	scripts, _ := filepath.Glob(filepath.Join(dir, "p*"))
	for _, script := range scripts {
		run(t, "sh", "-n", script)
		if text := read(t, script); !strings.HasPrefix(text, "#!/bin/sh\nset -e\n") {
			t.Errorf("%s goes on after a failure", filepath.Base(script))
		}
	}
	conffiles, _ := os.ReadFile(filepath.Join(dir, "conffiles"))
	for _, path := range paths {
		if path = strings.TrimPrefix(path, "."); strings.HasPrefix(path, "/etc/") != strings.Contains(string(conffiles), path+"\n") {
			t.Errorf("%s: what is in /etc, and nothing else, is a configuration file", path)
		}
	}
	unpacked := t.TempDir()
	run(t, "dpkg-deb", "--extract", file, unpacked)
	check := exec.CommandContext(t.Context(), "md5sum", "--quiet", "--check", filepath.Join(dir, "md5sums"))
	check.Dir = unpacked
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("checksums: %v\n%s", err, out)
	}
}

// TestReleaseIsNewerThanItsCandidates checks the order of versions that
// upgrades depend on.
func TestReleaseIsNewerThanItsCandidates(t *testing.T) {
	run(t, "dpkg", "--compare-versions", "1.2.3~rc1", "lt", "1.2.3")
	run(t, "dpkg", "--compare-versions", "1.2.2", "lt", "1.2.3~rc1")
}

// What a purge removes of the node's network is in a script, which does not know the names in the code.
func TestAPurgeRemovesAllOfTheNetwork(t *testing.T) {
	script := read(t, filepath.Join(harness.Root(), "deploy/packages/kctl-node/postrm"))
	for _, name := range []string{
		core.NodeNetworkName, core.NodeNetworkConfig, core.NodeNetworkBridge, core.NodeNetworkVXLAN, fmt.Sprint("proto ", core.NodeNetworkRoutes),
		"nat:" + core.NodeNetworkMasquerade, "filter:" + core.NodeNetworkForward, "mangle:" + core.NodeNetworkLoopback,
		"mangle:" + core.NodeNetworkOverlay, "mangle:" + core.NodeNetworkSource,
	} {
		if !strings.Contains(script, name) {
			t.Errorf("%s is left behind", name)
		}
	}
}
