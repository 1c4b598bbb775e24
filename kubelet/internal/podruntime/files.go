package podruntime

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"kctl/kubelet/internal/podfiles"
	"kctl/proto/core"
)

const (
	hostsPath = "/etc/hosts"

	managedHosts = "# Kubernetes-managed hosts file.\n" +
		"127.0.0.1\tlocalhost\n" +
		"::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\n" +
		"fe00::0\tip6-mcastprefix\n" +
		"fe00::1\tip6-allnodes\n" +
		"fe00::2\tip6-allrouters\n"
)

// hostsMount mounts the pod's hosts file, unless the container mounts something
// else there. The file must exist before the container is created, or the
// runtime makes a directory in its place.
func (m *Manager) hostsMount(pod *core.Pod, c *core.Container) (*Mount, error) {
	for _, v := range c.VolumeMounts {
		if filepath.Clean(v.MountPath) == hostsPath {
			return nil, nil
		}
	}
	path := podfiles.HostsFile(m.RootDir, pod.UID)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("making the pod's directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("making the pod's hosts file: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("making the pod's hosts file: %w", err)
	}
	return &Mount{ContainerPath: hostsPath, HostPath: path, SELinuxRelabel: true}, nil
}

// writeHosts fills the pod's hosts file before a container that sees it starts.
// It writes in place, because other containers have this very file mounted.
func (s *podSync) writeHosts() error {
	ips, err := s.ips.wait()
	if err != nil {
		return fmt.Errorf("writing the pod's hosts file: %w", err)
	}
	content, err := s.hosts(s.pod, ips)
	if err != nil {
		return fmt.Errorf("writing the pod's hosts file: %w", err)
	}
	s.files.Lock()
	defer s.files.Unlock()
	path := podfiles.HostsFile(s.RootDir, s.pod.UID)
	if _, err := os.Stat(path); err != nil {
		return nil // no container mounts it
	}
	if holds(path, content) {
		return nil
	}
	if err := overwrite(path, content); err != nil {
		return fmt.Errorf("writing the pod's hosts file: %w", err)
	}
	return nil
}

// holds tells whether a file has the given content. Containers can write to it,
// too, so no more than that length is read.
func holds(path string, content []byte) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	has, err := io.ReadAll(io.LimitReader(f, int64(len(content))+1))
	return err == nil && bytes.Equal(has, content)
}

// overwrite changes the content of a file that others have mounted. It reserves
// the space first, so that nothing is lost on a full disk.
func overwrite(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, int64(len(content)))
	if err == nil || errors.Is(err, unix.EOPNOTSUPP) {
		_, err = f.WriteAt(content, 0)
	}
	if err == nil {
		err = f.Truncate(int64(len(content)))
	}
	return errors.Join(err, f.Close())
}

// hosts is the content of a pod's hosts file: the node's for pods in its
// network, and otherwise one with the pod itself.
func (m *Manager) hosts(pod *core.Pod, ips []string) ([]byte, error) {
	var out bytes.Buffer
	if pod.Spec.HostNetwork {
		node, err := os.ReadFile(hostsPath)
		if err != nil {
			return nil, err
		}
		out.WriteString("# Kubernetes-managed hosts file (host network).\n")
		out.Write(node)
	} else {
		out.WriteString(managedHosts)
		name, domain := m.hostAndDomain(pod)
		for _, ip := range ips {
			if domain != "" {
				fmt.Fprintf(&out, "%s\t%s.%s\t%s\n", ip, name, domain, name)
			} else {
				fmt.Fprintf(&out, "%s\t%s\n", ip, name)
			}
		}
	}
	if len(pod.Spec.HostAliases) > 0 {
		out.WriteString("\n# Entries added by HostAliases.\n")
		for _, alias := range pod.Spec.HostAliases {
			fmt.Fprintf(&out, "%s\t%s\n", alias.IP, strings.Join(alias.Hostnames, "\t"))
		}
	}
	return out.Bytes(), nil
}

// terminationMount gives the container a file for its termination message, one
// for each start; every user in the container may write to it.
func (m *Manager) terminationMount(pod *core.Pod, c *core.Container) (*Mount, error) {
	if c.TerminationMessagePath == "" {
		return nil, nil
	}
	dir := podfiles.MessageDir(m.RootDir, pod.UID, c.Name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("making the container's directory: %w", err)
	}
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails, says its documentation
	path := filepath.Join(dir, hex.EncodeToString(id))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, fmt.Errorf("making the container's termination message file: %w", err)
	}
	// Once more, because the process's umask cleared some bits.
	err = f.Chmod(0o666)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("making the container's termination message file: %w", err)
	}
	return &Mount{ContainerPath: c.TerminationMessagePath, HostPath: path, SELinuxRelabel: true}, nil
}

// inContainer is a mount path in the form that the runtime needs: absolute.
func inContainer(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + path
}
