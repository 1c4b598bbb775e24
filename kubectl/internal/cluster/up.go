package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"kctl/kubectl/internal/certificates"
	"kctl/kubectl/internal/images"
	"kctl/proto/pki"
)

// UpOptions are what a user can choose; the flags of `kctl up`.
type UpOptions struct {
	Dir      string
	Port     int
	PortSet  bool // the user named Port
	NodeName string
	Address  string // of this machine, for nodes and pods; "" for loopback
	// EtcdServers, Without and Flags are those of the last time if the user does not name
	// them.
	EtcdServers    string
	EtcdServersSet bool              // the user named EtcdServers
	BinDir         string            // "" for the folder of this program
	Without        []string          // parts that are not started
	WithoutSet     bool              // the user named Without
	Flags          map[string]string // part → flags passed on to it, where the user named them
}

// Validate checks the options by themselves.
func (o UpOptions) Validate() error {
	for _, w := range o.Without {
		if !slices.Contains(Parts, w) {
			return fmt.Errorf("--without=%s: unknown part; the parts are %s", w, strings.Join(Parts, ", "))
		}
	}
	for _, part := range slices.Sorted(maps.Keys(o.Flags)) {
		args, err := splitFlags(o.Flags[part])
		if err != nil {
			return fmt.Errorf("--%s-flags: %w", part, err)
		}
		if part == Apiserver && flagOf(args, "--secure-port") != "" {
			return errors.New("--apiserver-flags: use --port instead of --secure-port, so that all parts and kubeconfigs use the same port")
		}
	}
	if o.Port < 1 || o.Port > 65535 {
		return fmt.Errorf("--port=%d: not a port", o.Port)
	}
	if ip := net.ParseIP(o.Address); o.Address != "" && (ip.To4() == nil || ip.IsUnspecified() || ip.IsLoopback() && o.Address != loopback) {
		return fmt.Errorf("--address=%s: not an IPv4 address of a machine", o.Address)
	}
	return nil
}

// Result is what a user needs to know about a cluster that is up.
type Result struct {
	Kubeconfig string
	Server     string
	Images     []string
	Without    []string // parts that were not started
}

// PartialError says that only a part of the cluster in Dir was started, or taken away,
// before the error.
type PartialError struct {
	Dir string
	Err error
}

func (e *PartialError) Error() string { return e.Err.Error() }
func (e *PartialError) Unwrap() error { return e.Err }

// Up brings the cluster up: it starts whatever part of it is not running, and
// leaves the rest alone. It reports its steps to progress.
func Up(ctx context.Context, o UpOptions, progress Progress) (*Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	l, err := newLayout(o.Dir)
	if err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("kctl up must run as root: it starts a container runtime and creates network links")
	}
	if before, err := loadSettings(l); err == nil { // what is wrong with them is told below
		before.recall(&o)
	}
	service, err := serviceAddress(o.Flags[Apiserver])
	if err != nil {
		return nil, err
	}
	// Before anything is made, so that a machine that is not ready stays as it was.
	cniBin, err := checkMachine(l, o)
	if err != nil {
		return nil, err
	}
	// Users other than root read what is made here, including users in containers.
	// What they must not read gets its own mode.
	unix.Umask(0o022)
	unlock, err := l.prepare()
	if err != nil {
		return nil, err
	}
	defer unlock()
	var s *settings
	err = progress.Step("certificates and kubeconfigs", func() (string, error) {
		if s, err = chooseSettings(l, o); err != nil {
			return "", err
		}
		changes, err := certificatesOf(l, s, service).Make(time.Now())
		return l.path("pki") + renewedSummary(changes), err
	})
	if err != nil {
		return nil, err
	}
	if err := startParts(ctx, l, s, o, cniBin, progress); err != nil {
		return nil, &PartialError{l.Dir, err}
	}
	result := &Result{Kubeconfig: l.Kubeconfig("admin"), Server: s.server(), Without: o.Without}
	if !slices.Contains(o.Without, Registry) {
		result.Images = []string{images.Host + "/demo"}
	}
	return result, nil
}

// checkMachine says what this machine lacks for a cluster, and where its CNI plugins are, if
// they are needed.
func checkMachine(l Layout, o UpOptions) (cniBin string, err error) {
	if err := errors.Join(loopbackUp(), l.checkAvailable(o), o.checkBuilt()); err != nil {
		return "", err
	}
	if slices.Contains(o.Without, Containerd) {
		return "", nil
	}
	return checkTools()
}

// renewedSummary is a word on how many certificates were.
func renewedSummary(changes []certificates.Change) string {
	count := 0
	for _, change := range changes {
		if strings.HasPrefix(change.Done, certificates.Renewed) {
			count++
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf(", %d renewed", count)
}

// prepare makes the directories and takes the lock that keeps two commands
// from working on one cluster at a time.
func (l Layout) prepare() (unlock func(), err error) {
	if entries, err := os.ReadDir(l.Dir); err == nil {
		other := slices.IndexFunc(entries, isOthers)
		if _, err := os.Stat(l.Settings()); errors.Is(err, fs.ErrNotExist) && other >= 0 {
			return nil, fmt.Errorf("%s holds files of others, such as %s, and no cluster; choose another --dir", l.Dir, entries[other].Name())
		}
	}
	if err := os.MkdirAll(l.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("cluster directory: %w", err)
	}
	if err := l.checkNotShared(); err != nil { // not before: another user could make it in between
		return nil, err
	}
	for _, dir := range []string{"run", "log", "pki"} {
		if err := os.MkdirAll(l.path(dir), 0o700); err != nil {
			return nil, fmt.Errorf("cluster directory: %w", err)
		}
	}
	// The containers' root file systems are below it, and the root of a pod's user
	// namespace, an unprivileged user here, must be able to reach them.
	if err := os.Chmod(l.path("run"), 0o711); err != nil {
		return nil, fmt.Errorf("cluster directory: %w", err)
	}
	return l.lock()
}

// isOthers says of an entry that it is not from an up that was cut short before it chose its settings.
func isOthers(e os.DirEntry) bool {
	return !slices.Contains([]string{"run", "log", "pki", "apiserver"}, e.Name()) && !pki.IsUnfinished(e.Name(), settingsFile)
}

func (l Layout) lock() (unlock func(), err error) {
	f, err := os.OpenFile(l.path("run", "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the cluster: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another kctl process is working on the cluster in %s", l.Dir)
	}
	return func() { f.Close() }, nil
}

// stages say which parts wait for which: parts of one stage start side by side.
var stages = [][]string{{Registry, Containerd, Apiserver}, {Scheduler, Kubelet}}

func startParts(ctx context.Context, l Layout, s *settings, o UpOptions, cniBin string, progress Progress) error {
	all, err := programs(l, s, o)
	if err != nil {
		return err
	}
	wanted := func(name string) bool { return !slices.Contains(o.Without, name) }
	if wanted(Containerd) {
		if err := writeRuntimeConfig(l, s, cniBin); err != nil {
			return fmt.Errorf("configure containerd: %w", err)
		}
		if err := l.guardLoopback(ctx); err != nil {
			return fmt.Errorf("keep pods from this machine's loopback: %w", err)
		}
	}
	for _, stage := range stages {
		group, ctx := errgroup.WithContext(ctx)
		for _, name := range stage {
			switch {
			case wanted(name):
				group.Go(func() error { return startPart(ctx, l, all[name], progress) })
			case l.pid(name) != 0:
				_ = progress.Step(name, func() (string, error) { return l.runsOn(name), nil })
			}
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func startPart(ctx context.Context, l Layout, p program, progress Progress) error {
	return progress.Step(p.name, func() (string, error) {
		started, err := l.start(ctx, p)
		if err == nil && !started {
			return l.wasRunning(p), nil
		}
		return "", err
	})
}
