package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
)

// maxSocketPath is what Linux takes as the path of a Unix socket.
const maxSocketPath = 107

// Layout says where a cluster keeps what it makes: everything below one
// directory.
type Layout struct {
	Dir string // absolute
}

// newLayout returns the layout below dir.
func newLayout(dir string) (Layout, error) {
	if dir == "" { // an unset variable, more likely than the directory one is in
		return Layout{}, errors.New("cluster directory: --dir is empty")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Layout{}, fmt.Errorf("cluster directory: %w", err)
	}
	l := Layout{Dir: dir}
	if n := len(l.Socket()); n > maxSocketPath {
		return Layout{}, fmt.Errorf("cluster directory %s: its path is %d characters too long for a Unix socket in it", dir, n-maxSocketPath)
	}
	return l, nil
}

func (l Layout) path(parts ...string) string {
	return filepath.Join(append([]string{l.Dir}, parts...)...)
}

// Settings is the file that marks a directory as a cluster's and remembers
// what was chosen for it.
func (l Layout) Settings() string { return l.path(settingsFile) }

const settingsFile = "cluster.json"

// PKI is a file among the certificates and keys.
func (l Layout) PKI(name string) string { return l.path("pki", name) }

// Kubeconfig is the kubeconfig of a user: admin, scheduler, ….
func (l Layout) Kubeconfig(user string) string { return l.path(user + ".kubeconfig") }

// Socket is containerd's.
func (l Layout) Socket() string { return l.path("run", "containerd.sock") }

// PIDFile holds the process id of a program.
func (l Layout) PIDFile(program string) string { return l.path("run", program+".pid") }

// Log is a program's log file.
func (l Layout) Log(program string) string { return l.path("log", program+".log") }

// KubeletRoot is the kubelet's directory.
func (l Layout) KubeletRoot() string { return l.path("kubelet") }

// Pods is where the logs of the pods' containers are.
func (l Layout) Pods() string { return l.path("log", "pods") }

// ID tells this cluster from others on the machine, in names that are not
// below its directory: the bridge, the CNI network, the cgroup.
func (l Layout) ID() string {
	sum := sha256.Sum256([]byte(l.Dir))
	return hex.EncodeToString(sum[:4])
}

// Network is the name of the CNI network; Bridge that of its link.
func (l Layout) Network() string { return "kctl-" + l.ID() }

// Bridge is at most 15 characters long, as links' names must be.
func (l Layout) Bridge() string { return "kctl" + l.ID() }

// CgroupRoot is the cgroup below which the kubelet makes those of its pods.
func (l Layout) CgroupRoot() string { return "/kctl-" + l.ID() }
