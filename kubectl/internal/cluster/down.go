package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"kctl/proto/pki"
)

// DownOptions are the flags of `kctl down`.
type DownOptions struct {
	Dir      string
	KeepData bool // keep the store, the certificates and the kubeconfigs
}

const stopGrace = 10 * time.Second

// Down removes the cluster: its pods, its programs, everything that they made
// outside its directory, and then the directory.
func Down(ctx context.Context, o DownOptions, progress Progress) error {
	l, err := newLayout(o.Dir)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("kctl down must run as root")
	}
	if _, err := os.Stat(l.Settings()); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return errNoCluster{l}
		}
		return err
	}
	if err := os.MkdirAll(l.path("run"), 0o700); err != nil { // a down that kept the data has removed it
		return fmt.Errorf("cluster directory: %w", err)
	}
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	// Every step is tried, even if earlier ones failed, so that as much as possible is
	// removed; but none once the user has had enough.
	var errs []error
	step := func(name string, do func() (string, error)) {
		if ctx.Err() == nil {
			errs = append(errs, progress.Step(name, do))
		}
	}
	stopProgram := func(name string) {
		if l.pid(name) != 0 {
			step(name, func() (string, error) { return "stopped", l.stop(ctx, name, stopGrace) })
		}
	}
	stopProgram(Kubelet) // first, or it would start the pods again
	step("pods", func() (string, error) { return l.removePods(ctx) })
	for _, name := range []string{Scheduler, Apiserver, Containerd, Registry} {
		stopProgram(name)
	}
	step("mounts, links, rules and cgroups", func() (string, error) { return "", l.cleanMachine(ctx) })
	if err := errors.Join(errors.Join(errs...), ctx.Err()); err != nil {
		return &PartialError{l.Dir, err} // what the directory holds tells the next down what to look for
	}
	if err := progress.Step(l.Dir, func() (string, error) { return l.removeFiles(o.KeepData) }); err != nil {
		return &PartialError{l.Dir, err}
	}
	return nil
}

// removeFiles removes what up and the programs wrote. It refuses while anything is
// mounted there, because removing would then reach into pods' volumes or a user's disk.
func (l Layout) removeFiles(keepData bool) (string, error) {
	remove := []string{"containerd", "containerd.toml", "certs.d", "cni", "registry", "kubelet", "log", "run"}
	if !keepData {
		drafts, err := l.drafts()
		if err != nil {
			return "", err
		}
		remove = append(append(remove, drafts...), "apiserver", "pki")
		for _, user := range users {
			remove = append(remove, user+".kubeconfig")
		}
	}
	err := l.checkUnmounted(append(remove, settingsFile)...)
	if err != nil {
		return "", err
	}
	left := l.leftBehindLinks(remove)
	for _, name := range remove {
		err = errors.Join(err, os.RemoveAll(l.path(name)))
	}
	if err != nil || keepData {
		return "store, certificates and kubeconfigs kept" + left, err
	}
	// Last, and only if nothing is left: without it, there is no cluster for another down.
	if err := os.RemoveAll(l.Settings()); err != nil {
		return "", err
	}
	return l.removeDir() + left, nil
}

// removeDir removes the directory if nothing but the cluster was there, and says what became of it.
func (l Layout) removeDir() string {
	err := unix.Rmdir(l.Dir)
	// Of a directory that is a mount or a link, the error does not say whether it is empty.
	if entries, _ := os.ReadDir(l.Dir); len(entries) > 0 {
		return fmt.Sprintf("kept, because it holds files that are not the cluster's, such as %s", entries[0].Name())
	}
	switch {
	case err == nil:
		return "removed"
	case errors.Is(err, unix.EBUSY):
		return "emptied, but kept, because something is mounted there"
	case errors.Is(err, unix.ENOTDIR): // what a link leads to can be removed, but what would the link then be for?
		return "emptied, but kept, because it is a link that the cluster has not made"
	default:
		return "emptied, but kept: " + err.Error()
	}
}

// drafts are what a kctl that was killed has left of the files that it wrote.
func (l Layout) drafts() ([]string, error) {
	written := []string{settingsFile}
	for _, user := range users {
		written = append(written, user+".kubeconfig")
	}
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if slices.ContainsFunc(written, func(name string) bool { return pki.IsUnfinished(e.Name(), name) }) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}
