package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/podfiles"
	"kctl/proto/core"
)

const (
	// Path is where containers see the file.
	Path = "/etc/hosts"

	managedHosts = "# Kubernetes-managed hosts file.\n" +
		"127.0.0.1\tlocalhost\n" +
		"::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\n" +
		"fe00::0\tip6-mcastprefix\n" +
		"fe00::1\tip6-allnodes\n" +
		"fe00::2\tip6-allrouters\n"
)

// CreateFile makes a pod's hosts file, unless it is there, and returns its path. The
// file must exist before a container that has it mounted is created, or the runtime
// makes a directory in its place.
func CreateFile(rootDir string, pod types.UID) (path string, err error) {
	path = podfiles.HostsFile(rootDir, pod)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return "", fmt.Errorf("making the pod's directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return "", fmt.Errorf("making the pod's hosts file: %w", err)
	}
	if err := f.Close(); err != nil {
		return "", fmt.Errorf("making the pod's hosts file: %w", err)
	}
	return path, nil
}

// WriteFile fills a pod's hosts file, if some container has it mounted. It writes in
// place, because other containers have this very file. For one pod only one call may
// run at a time.
func WriteFile(rootDir, clusterDomain string, pod *core.Pod, ips []string) error {
	content, err := content(clusterDomain, pod, ips)
	if err != nil {
		return fmt.Errorf("writing the pod's hosts file: %w", err)
	}
	path := podfiles.HostsFile(rootDir, pod.UID)
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

// content is that of a pod's hosts file: the node's for pods in its
// network, and otherwise one with the pod itself.
func content(clusterDomain string, pod *core.Pod, ips []string) ([]byte, error) {
	var out bytes.Buffer
	if pod.Spec.HostNetwork {
		node, err := os.ReadFile(Path)
		if err != nil {
			return nil, err
		}
		out.WriteString("# Kubernetes-managed hosts file (host network).\n")
		out.Write(node)
	} else {
		out.WriteString(managedHosts)
		name, domain := nameAndDomain(pod, clusterDomain)
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
