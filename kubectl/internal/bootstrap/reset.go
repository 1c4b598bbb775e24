package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"kctl/kubectl/internal/cluster"
	"kctl/proto/pki"
)

// Reset removes what Join and the kubelet made on this machine: pods, the
// kubelet's directory, and its configuration files. Those of a control plane
// stay.
func Reset(ctx context.Context, n Node) error {
	if os.Geteuid() != 0 {
		return errors.New("kctl reset must run as root")
	}
	admitted := n.hasCertificates() // before that, there were no pods
	if !admitted && hasFiles(n.RootDir) {
		return fmt.Errorf("%s contains no kubelet certificates and was not removed: check --root-dir", n.RootDir)
	}
	if Systemd() {
		if err := stopUnit(ctx); err != nil {
			return err
		}
	}
	if pid := n.kubeletProcess(); pid != "" {
		return fmt.Errorf("the kubelet is still running (process %s): stop it first", pid)
	}
	if admitted {
		if err := cluster.RemoveNode(ctx, n.Runtime, n.RootDir); err != nil {
			return fmt.Errorf("remove the pods: %w", err)
		}
	} else if err := cluster.RemoveKubeletDir(n.RootDir); err != nil {
		return err
	}
	files := []string{n.bootstrapKubeconfig(), n.Kubeconfig(), n.configFile()}
	if _, err := os.Stat(n.path("pki/apiserver.crt")); errors.Is(err, os.ErrNotExist) {
		files = append(files, n.caFile())
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := pki.RemoveUnfinished(file); err != nil {
			return err
		}
	}
	// Whoever keeps something in them keeps them, and links to them.
	_ = syscall.Rmdir(n.path("pki"))
	_ = syscall.Rmdir(n.Dir)
	return nil
}

// hasCertificates keeps a mistaken --root-dir from being removed.
func (n Node) hasCertificates() bool {
	found, _ := filepath.Glob(filepath.Join(n.RootDir, "pki", "kubelet*"))
	return len(found) > 0
}

// hasFiles says whether a directory holds more than other directories, which are all that a
// kubelet makes before it is let in.
func hasFiles(dir string) (has bool) {
	at, err := filepath.EvalSymlinks(dir) // no link is followed by what is next
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	_ = filepath.WalkDir(at, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		has = true
		return fs.SkipAll
	})
	return has
}

// kubeletProcess is the process of this node's kubelet; "" if none runs.
func (n Node) kubeletProcess() string {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		data, err := os.ReadFile(file)
		if err != nil || bytes.Contains(data, []byte("\x00reset\x00")) { // this command, or the sudo of it
			continue
		}
		for _, separator := range []string{"=", "\x00"} {
			process := filepath.Dir(file)
			if bytes.Contains(data, []byte("\x00--kubeconfig"+separator+n.Kubeconfig()+"\x00")) && !n.isOthers(process) {
				return filepath.Base(process)
			}
		}
	}
	return ""
}

// isOthers says whether a process is in a container that is a node of its own: there, other files
// have the same path. Where control groups are shared, what removes ours would end its pods.
func (n Node) isOthers(process string) bool {
	own, errOwn := os.Stat(n.Dir)
	its, errIts := os.Stat(filepath.Join(process, "root", n.Dir))
	ownGroups, errOwnGroups := os.Readlink("/proc/self/ns/cgroup")
	itsGroups, errItsGroups := os.Readlink(filepath.Join(process, "ns/cgroup"))
	return errors.Join(errOwn, errIts, errOwnGroups, errItsGroups) == nil && !os.SameFile(own, its) && ownGroups != itsGroups
}
