package critest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cri"
	"kctl/proto/leftover"
)

const (
	// PauseImage keeps sandboxes alive.
	PauseImage = "critest.local/pause:1"
	// BusyboxImage has /bin/busybox with all its applets, and runs a shell.
	BusyboxImage = "critest.local/busybox:1"

	startTimeout = 30 * time.Second
	stopTimeout  = 30 * time.Second
	shimTimeout  = 10 * time.Second
	cniPlugins   = "/usr/lib/cni"
	// prefix begins the names of the directories of all tests' containerds.
	prefix = "critest"
)

// Containerd is a containerd that belongs to one test.
type Containerd struct {
	Endpoint string // unix://…
	Dir      string // everything of it is below this
	Bridge   string // the pods' network link
	// CgroupRoot is a control group of the test's own for a kubelet's pods. It is
	// not created here, but removed.
	CgroupRoot string

	client  *cri.Client
	process *exec.Cmd
	exited  chan error
}

// Start starts a containerd with the package's images, waits until it is ready,
// and stops it when t ends. It skips the test where containerd can't run.
func Start(t testing.TB) *Containerd {
	t.Helper()
	if reason := missing(); reason != "" {
		t.Skipf("no containerd for this test: %s", reason)
	}
	if err := leftover.Sweep(os.TempDir(), prefix, takeAwayAbandoned); err != nil {
		t.Log(err) // the next test tries again
	}
	// Not t.TempDir: socket paths are limited to 107 bytes.
	dir, release, err := leftover.Hold(os.TempDir(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	// The root of a pod's user namespace must be able to enter it.
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	c := newContainerd(dir)
	t.Cleanup(func() {
		c.end(t)
		release()
	})
	if err := c.writeConfig(); err != nil {
		t.Fatal(err)
	}
	if c.client, err = cri.New(c.Endpoint, cri.Options{}); err != nil {
		t.Fatal(err)
	}
	c.Up(t)
	if err := c.importImages(); err != nil {
		t.Fatal(err)
	}
	return c
}

// newContainerd is the containerd of a directory: all its names are derived
// from the directory's, so that its leftovers can be found by that.
func newContainerd(dir string) *Containerd {
	sum := sha256.Sum256([]byte(dir))
	return &Containerd{
		Dir:        dir,
		Endpoint:   "unix://" + filepath.Join(dir, "c.sock"),
		Bridge:     "ct" + hex.EncodeToString(sum[:4]),
		CgroupRoot: "/kctl-test-" + filepath.Base(dir),
	}
}

// Only skips the test, saying why, if the machine's containerd is older than
// that version. make test-long puts a new one before it on the PATH.
func (c *Containerd) Only(t testing.TB, major, minor int) {
	t.Helper()
	version, err := c.client.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var has [2]int
	if _, err := fmt.Sscanf(strings.TrimPrefix(version.GetRuntimeVersion(), "v"), "%d.%d", &has[0], &has[1]); err != nil {
		t.Fatalf("containerd's version %q: %v", version.GetRuntimeVersion(), err)
	}
	if slices.Compare(has[:], []int{major, minor}) < 0 {
		t.Skipf("containerd is %s; this needs %d.%d (make test-long has it)", version.GetRuntimeVersion(), major, minor)
	}
}

// Client is a CRI client, which is closed when the test ends.
func (c *Containerd) Client() *cri.Client { return c.client }

// Up starts the daemon, also after Down, and waits until it and its network are
// ready.
func (c *Containerd) Up(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(c.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c.process = exec.Command("containerd", "--config", filepath.Join(c.Dir, "config.toml"))
	c.process.Stdout, c.process.Stderr = log, log
	if err := c.process.Start(); err != nil {
		t.Fatal(err)
	}
	c.exited = make(chan error, 1)
	go func(p *exec.Cmd, exited chan<- error) { exited <- p.Wait() }(c.process, c.exited)
	if err := c.waitReady(); err != nil {
		t.Fatalf("containerd: %v\n%s", err, c.log())
	}
}

// Down stops only the daemon: its containers go on, as during an upgrade.
func (c *Containerd) Down(t testing.TB) {
	t.Helper()
	if c.process == nil {
		return
	}
	_ = c.process.Process.Signal(os.Interrupt)
	select {
	case <-c.exited:
	case <-time.After(stopTimeout):
		_ = c.process.Process.Kill()
		<-c.exited
		t.Errorf("containerd did not stop within %v", stopTimeout)
	}
	c.process = nil
}

func (c *Containerd) waitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		if last = c.ready(ctx); last == nil {
			return nil
		}
		select {
		case err := <-c.exited:
			c.exited <- err
			return fmt.Errorf("exited while starting: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("not ready within %v: %w", startTimeout, last)
		case <-tick.C:
		}
	}
}

func (c *Containerd) ready(ctx context.Context) error {
	status, err := c.client.Status(ctx, false)
	if err != nil {
		return err
	}
	for _, condition := range status.GetStatus().GetConditions() {
		// Newer versions have conditions of their own, such as a warning about cgroup
		// v1.
		wanted := condition.GetType() == runtimeapi.RuntimeReady || condition.GetType() == runtimeapi.NetworkReady
		if wanted && !condition.GetStatus() {
			return fmt.Errorf("%s is false: %s", condition.GetType(), condition.GetMessage())
		}
	}
	return nil
}

func (c *Containerd) importImages() error {
	for name, build := range map[string]func() ([]byte, error){
		PauseImage:   func() ([]byte, error) { return imageTar(PauseImage, "/bin/sleep", "infinity") },
		BusyboxImage: func() ([]byte, error) { return imageTar(BusyboxImage, "/bin/sh") },
	} {
		content, err := build()
		if err != nil {
			return fmt.Errorf("building image %s: %w", name, err)
		}
		if err := c.Import(content); err != nil {
			return fmt.Errorf("importing image %s: %w", name, err)
		}
		if err := c.waitImage(name); err != nil {
			return err
		}
	}
	return nil
}

// Import loads the images of an OCI archive into the runtime.
func (c *Containerd) Import(archive []byte) error {
	file := filepath.Join(c.Dir, "image.tar")
	if err := os.WriteFile(file, archive, 0o600); err != nil {
		return err
	}
	defer os.Remove(file)
	out, err := exec.Command("ctr", "--address", filepath.Join(c.Dir, "c.sock"), "--namespace", "k8s.io",
		"images", "import", file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// waitImage waits until CRI lists an imported image.
func (c *Containerd) waitImage(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		image, err := c.client.ImageStatus(ctx, &runtimeapi.ImageSpec{Image: name})
		if err == nil && image != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("image %s is imported but not known: %v", name, err)
		case <-tick.C:
		}
	}
}

func (c *Containerd) logPath() string { return filepath.Join(c.Dir, "containerd.log") }

func (c *Containerd) log() string {
	content, _ := os.ReadFile(c.logPath())
	return string(content)
}

func missing() string {
	if os.Geteuid() != 0 {
		return "it needs root"
	}
	for _, program := range []string{"containerd", "ctr", "runc", "busybox", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			return err.Error()
		}
	}
	if _, err := os.Stat(filepath.Join(cniPlugins, "bridge")); err != nil {
		return err.Error()
	}
	return ""
}
