package install_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/test/harness"
)

// jobUnit runs the job on the second disk, a tar file, writes its output to the
// second serial line, and turns the machine off.
const jobUnit = `[Unit]
Wants=containerd.service
After=containerd.service
[Service]
ExecStart=/bin/sh -c 'mkdir /job && tar -xf /dev/vdb -C /job && cd /job && sh run.sh; systemctl poweroff'
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS1
`

// emulated boots a Debian with a kernel of its own, and with packages of ours, on
// an emulated computer without network. It runs script there, beside the files,
// and returns the output.
func emulated(t *testing.T, packages map[string]string, script string, files ...string) string {
	t.Helper()
	if goruntime.GOARCH != "amd64" {
		t.Skipf("skipped: the emulated computer is an amd64, this one is %s", goruntime.GOARCH)
	}
	need(t, "debootstrap", "mkfs.ext4", "qemu-system-x86_64", "tar", "unshare")
	root, dir := directory(t), t.TempDir()
	bootstrap(t, root, "initramfs-tools", "kmod", "linux-image-cloud-amd64", "procps", "udev")
	for path, text := range map[string]string{
		"/etc/systemd/system/job.service": jobUnit,
		"/etc/hostname":                   "node-1\n",
		"/etc/hosts":                      "127.0.0.1 localhost node-1\n",
	} {
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../job.service", filepath.Join(root, "/etc/systemd/system/multi-user.target.wants/job.service")); err != nil {
		t.Fatal(err)
	}

	installInto(t, root, packages)

	disk, job, said := filepath.Join(dir, "disk"), filepath.Join(dir, "job"), filepath.Join(dir, "said")
	run(t, "truncate", "--size=4G", disk)
	run(t, "mkfs.ext4", "-q", "-d", root, disk)
	content := filepath.Join(dir, "content")
	run(t, "mkdir", content)
	run(t, "cp", append(files, content)...)
	run(t, "cp", script, filepath.Join(content, "run.sh"))
	run(t, "tar", "-cf", job, "-C", content, ".")

	ctx, cancel := almostAsLongAs(t)
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "3G",
		"-kernel", kernel(t, root, "vmlinuz-*"), "-initrd", kernel(t, root, "initrd.img-*"),
		"-append", "root=/dev/vda rw console=ttyS0 systemd.unified_cgroup_hierarchy=1",
		"-drive", "if=virtio,format=raw,cache=unsafe,file="+disk, "-drive", "if=virtio,format=raw,readonly=on,file="+job,
		"-net", "none", "-display", "none", "-monitor", "none", "-no-reboot", "-serial", "file:"+filepath.Join(dir, "console"), "-serial", "file:"+said)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the emulated computer: %v\n%s\n%s\n%s", err, out, read(t, filepath.Join(dir, "console")), read(t, said))
	}
	return strings.ReplaceAll(read(t, said), "\r", "")
}

// installInto installs packages in root, from outside, and lets Debian's own etcd be: what is done or left
// here, the emulated computer, which is many times slower, need not do.
func installInto(t *testing.T, root string, packages map[string]string) {
	t.Helper()
	run(t, "mkdir", filepath.Join(root, "packages"))
	run(t, "cp", append(slices.Collect(maps.Values(packages)), filepath.Join(root, "packages"))...)
	run(t, "unshare", "--mount", "sh", "-ec", `mount -t proc proc "$1/proc"; chroot "$1" sh -ec "$2"`, "sh", root,
		"dpkg -i /packages/*.deb; rm -r /packages; systemctl disable etcd")
}

// almostAsLongAs ends soon enough before the test is given up to say how far it came: nobody knows how long an
// emulated computer takes on a machine that has other things to do.
func almostAsLongAs(t *testing.T) (context.Context, context.CancelFunc) {
	if deadline, is := t.Deadline(); is {
		return context.WithDeadline(t.Context(), deadline.Add(-time.Minute))
	}
	return context.WithCancel(t.Context())
}

// kernel is the one file in root's /boot that matches pattern.
func kernel(t *testing.T, root, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "boot", pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s in /boot: %q, %v", pattern, found, err)
	}
	return found[0]
}

// TestUnifiedGroups runs a node on a kernel with cgroup v2 only, as most
// machines have, where systemd makes the pods' groups.
func TestUnifiedGroups(t *testing.T) {
	harness.NeedLong(t, "it makes a whole Debian and emulates its computer")
	harness.NeedRoot(t)
	images := archives(t)
	classes := filepath.Join(t.TempDir(), "classes.sh")
	if err := os.WriteFile(classes, []byte(threeClasses), 0o644); err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "cgroup.test") // of what other machines skip, too
	run(t, "env", "CGO_ENABLED=0", "go", "-C", "../../kubelet", "test", "-c", "-o", unit, "./internal/cgroup")
	said := emulated(t, packages(t, "1.0.0", "1.0.0"), "testdata/unified.sh", filepath.Join(images, "pause.tar"), filepath.Join(images, "demo.tar"),
		classes, unit)
	var facts []string
	for line := range strings.Lines(said) {
		if fact, is := strings.CutPrefix(line, "= "); is {
			facts = append(facts, strings.TrimSpace(fact))
		}
	}
	for _, want := range []string{
		"groups cgroup2fs",
		"the kubelet's tests of groups pass",
		"guaranteed place /kubepods.slice/kubepods-podUID.slice",
		"guaranteed cpu.max 50000 100000",
		"guaranteed memory.max 67108864",
		"guaranteed scope",
		"guaranteed memory.min 67108864 67108864",
		"guaranteed memory.low 0 0",
		"guaranteed memory.high max max",
		"burstable place /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice",
		"burstable cpu.max max 100000",
		"burstable memory.max 134217728",
		"burstable scope",
		"burstable memory.min 0 0",
		"burstable memory.low 33554432 33554432",
		"burstable memory.high max 83886080",
		"besteffort place /kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podUID.slice",
		"besteffort cpu.weight 1",
		"besteffort memory.max max",
		"besteffort scope",
		"besteffort memory.low 0 0",
		"kubepods.slice protects 100663296 33554432",
		"kubepods-burstable.slice protects 0 33554432",
		"resized memory.max 100663296",
		"resized memory.high 67108864",
		"resized restarts 0",
		"nothing left",
		"status 0",
	} {
		if !slices.Contains(facts, want) {
			t.Errorf("%q is not true", want)
		}
	}
	if t.Failed() {
		t.Log(fmt.Sprintf("facts: %q\n", facts), said)
	}
}
