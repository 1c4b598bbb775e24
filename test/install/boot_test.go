package install_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"kctl/test/harness"
)

// machine is a Debian system booted by its own systemd, with namespaces of its
// own: processes, mounts, host name, network, control groups.
type machine struct {
	t    *testing.T
	root string
	name string // of its control group
	init int    // process id of its systemd in the host's namespace
	cmd  *exec.Cmd
	out  *os.File // what its process 1 and the shell before it say
}

// debian makes a machine's file system with debootstrap, or copies the one that
// $KCTL_DEBIAN names.
func debian(t *testing.T) string {
	t.Helper()
	root := directory(t)
	if made := os.Getenv("KCTL_DEBIAN"); made != "" {
		run(t, "cp", "-a", made+"/.", root)
		return root
	}
	bootstrap(t, root)
	return root
}

// directory makes an empty directory for a machine's file system.
func directory(t *testing.T) string {
	t.Helper()
	root := harness.Dir(t)
	if err := os.Chmod(root, 0o755); err != nil { // services run as users who must be able to enter it
		t.Fatal(err)
	}
	return root
}

// bootstrap fills root with a Debian and the packages that a node needs.
func bootstrap(t *testing.T, root string, more ...string) {
	t.Helper()
	packages := append([]string{"systemd", "systemd-sysv", "dbus", "etcd-server", "etcd-client", "curl", "containerd", "runc", "containernetworking-plugins",
		"iptables", "iproute2"}, more...)
	run(t, "debootstrap", "--variant=minbase", "--include="+strings.Join(packages, ","), "bookworm", root, "http://deb.debian.org/debian")
}

// bootScript prepares what systemd expects from a container manager
// (systemd.io/CONTAINER_INTERFACE) and execs systemd. Its control groups are
// those of the process.
const bootScript = `
set -e
root=$1 address=$2 host=$3
mount --make-rprivate /
mount --bind $root $root
mount -t proc proc $root/proc
mount -t sysfs sysfs $root/sys
for d in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs $root/$d; done
chmod 1777 $root/tmp
groups=$root/sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs $groups
while IFS=: read -r _ controllers _; do
	name=${controllers#name=}
	mkdir $groups/${name:-unified}
	case $controllers in
	'') mount -t cgroup2 cgroup2 $groups/unified ;;
	name=*) mount -t cgroup -o none,$controllers cgroup $groups/$name ;;
	*) mount -t cgroup -o $controllers cgroup $groups/$name ;;
	esac
done </proc/self/cgroup
for d in null zero full random urandom tty kmsg; do
	[ ! -e /dev/$d ] || { touch $root/dev/$d; mount --bind /dev/$d $root/dev/$d; }
done
mkdir $root/dev/pts $root/dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts $root/dev/pts
mount -t tmpfs tmpfs $root/dev/shm
ln -s pts/ptmx $root/dev/ptmx
ln -s /proc/self/fd $root/dev/fd
ip link set lo up
ip link add eth0 type veth peer name switch
ip address add $address/24 dev eth0
ip link set eth0 up
ip link set switch up
ip route add default dev eth0
echo $host >$root/etc/hostname
cd $root
mkdir -p before
pivot_root . before
umount -l /before
rmdir /before
# Credentials are mounted by a helper of systemd's, and have to be seen by it.
mount --make-rshared /
exec env -i container=kctl-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --log-target=journal
`

// boot starts the machine and waits until its systemd has started everything.
func boot(t *testing.T, root string) *machine {
	t.Helper()
	return bootAs(t, root, "192.0.2.11", "node-1", func(*machine) {})
}

// bootAs boots a machine with an address and a name. Its cable is plugged in
// while systemd starts, because some units may wait for the network.
func bootAs(t *testing.T, root, address, name string, plug func(*machine)) *machine {
	t.Helper()
	// A file, because a machine is halted, and may be copied (in), while it still writes.
	console, err := os.Create(filepath.Join(t.TempDir(), "console"))
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, root: root, name: filepath.Base(root), out: console}
	m.enterGroups()
	// The shell joins the groups before the namespaces are made, so that they
	// become the machine's root groups.
	join := `for g in "$@"; do echo $$ >$g/cgroup.procs || exit 1; done
exec unshare --pid --mount --uts --ipc --net --cgroup --fork --kill-child sh -c "$BOOT" boot ` + strings.Join([]string{root, address, name}, " ")
	m.cmd = exec.Command("sh", append([]string{"-c", join, "join"}, m.groups()...)...)
	m.cmd.Env = append(os.Environ(), "BOOT="+bootScript)
	m.cmd.Stdout, m.cmd.Stderr = m.out, m.out
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.halt)
	harness.Eventually(t, patience, func() error {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", m.cmd.Process.Pid))
		if err != nil {
			return err
		}
		m.init, err = strconv.Atoi(strings.TrimSpace(string(children)))
		if err != nil {
			return err
		}
		if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", m.init)); string(comm) != "systemd\n" {
			return fmt.Errorf("process 1 is still %q", comm)
		}
		return nil
	})
	plug(m)
	harness.Eventually(t, patience, func() error {
		if out, err := m.try("systemctl", "is-system-running"); strings.TrimSpace(out) != "running" {
			failed, _ := m.try("systemctl", "--failed", "--no-pager")
			return fmt.Errorf("systemd is %q (%w)\n%s", out, err, failed)
		}
		return nil
	})
	return m
}

// hierarchies are where cgroup hierarchies are mounted on the host.
func hierarchies(t *testing.T) []string {
	t.Helper()
	var points []string
	for line := range strings.Lines(read(t, "/proc/self/mountinfo")) {
		fields := strings.Fields(line)
		if kind := fields[len(fields)-3]; kind == "cgroup" || kind == "cgroup2" {
			points = append(points, fields[4])
		}
	}
	return points
}

func (m *machine) groups() []string {
	var groups []string
	for _, point := range hierarchies(m.t) {
		groups = append(groups, filepath.Join(point, m.name))
	}
	return groups
}

func (m *machine) enterGroups() {
	m.t.Helper()
	for _, group := range m.groups() {
		if err := os.Mkdir(group, 0o755); err != nil {
			m.t.Fatal(err)
		}
		for _, set := range []string{"cpuset.cpus", "cpuset.mems"} { // no process can join while these are empty
			if above, err := os.ReadFile(filepath.Join(filepath.Dir(group), set)); err == nil {
				if err := os.WriteFile(filepath.Join(group, set), above, 0o644); err != nil {
					m.t.Fatal(err)
				}
			}
		}
	}
}

// halt kills every process of the machine at once and removes its groups. A
// second call does nothing.
func (m *machine) halt() {
	if m.cmd.ProcessState != nil {
		return
	}
	if m.t.Failed() {
		out, _ := m.try("journalctl", "--no-pager", "-o", "short-precise", "-n", "400")
		m.t.Logf("%s\n%s", read(m.t, m.out.Name()), out)
	}
	if m.init != 0 {
		_ = syscall.Kill(m.init, syscall.SIGKILL) // process 1 of its PID namespace: all others go with it
	}
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
	_ = m.out.Close()
	for _, group := range m.groups() {
		harness.Eventually(m.t, patience, func() error {
			var groups []string
			err := filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					groups = append(groups, path)
				}
				return nil
			})
			for _, group := range slices.Backward(groups) { // the groups are sorted, children after their parents
				err = errors.Join(err, os.Remove(group))
			}
			return err
		})
	}
}

// try runs a command on the machine.
func (m *machine) try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.t.Context()), 2*patience)
	defer cancel()
	enter := []string{"-t", strconv.Itoa(m.init), "-m", "-u", "-i", "-n", "-p", "-C", "--", "env", "DEBIAN_FRONTEND=noninteractive",
		"KUBECONFIG=/etc/kctl/admin.kubeconfig", name}
	out, err := exec.CommandContext(ctx, "nsenter", append(enter, args...)...).CombinedOutput()
	return string(out), err
}

// do is try for a command that must succeed.
func (m *machine) do(name string, args ...string) string {
	m.t.Helper()
	out, err := m.try(name, args...)
	if err != nil {
		m.t.Fatalf("on the machine: %s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// sh is do for a line of shell.
func (m *machine) sh(line string) string {
	m.t.Helper()
	return m.do("sh", "-ec", line)
}

// path is where the host sees a file of the machine.
func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

// show returns a property of a unit.
func (m *machine) show(unit, property string) string {
	m.t.Helper()
	return strings.TrimSpace(m.do("systemctl", "show", "--value", "--property="+property, unit))
}

// becomes waits until a unit's property has a value.
func (m *machine) becomes(unit, property, want string) {
	m.t.Helper()
	harness.Eventually(m.t, patience, func() error {
		if got := m.show(unit, property); got != want {
			return fmt.Errorf("%s of %s is %q, want %q", property, unit, got, want)
		}
		return nil
	})
}

// copy copies files of the host to the machine.
func (m *machine) copy(to string, files ...string) {
	m.t.Helper()
	if err := os.MkdirAll(m.path(to), 0o755); err != nil {
		m.t.Fatal(err)
	}
	run(m.t, "cp", append(files, m.path(to))...)
}

// need skips the test, saying why, if the host lacks a program.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("skipped: needs %s: %v", p, err)
		}
	}
}
