// Package loglinks keeps the directory of links to containers' logs that log
// shippers read: /var/log/containers, beside /var/log/pods.
//
// podruntime adds a link when it has started a container; the pod's end and the
// collector remove those whose logs are gone. It never touches a log, nor a
// link that leads out of the log directory.
package loglinks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// longestName is the longest name of a file, in bytes.
const longestName = 255

// Directory is the directory of links to the logs below podLogsDir.
func Directory(podLogsDir string) string {
	return filepath.Join(filepath.Dir(filepath.Clean(podLogsDir)), "containers")
}

// Path is the link to the log of one container. Its name has the pod, the namespace, the
// container and the container's id.
func Path(podLogsDir, namespace, pod, container, id string) string {
	const extension = ".log"
	name := prefix(namespace, pod) + container + "-" + id
	return filepath.Join(Directory(podLogsDir), name[:min(len(name), longestName-len(extension))]+extension)
}

func prefix(namespace, pod string) string { return pod + "_" + namespace + "_" }

// Add makes the link at path to a log, and the directory if necessary. A log
// that does not exist gets no link: some runtimes keep no log files.
func Add(path, log string) error {
	if _, err := os.Stat(log); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := os.Symlink(log, path)
	if errors.Is(err, fs.ErrNotExist) { // the first one, or somebody has removed the directory
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = os.Symlink(log, path)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("link to a log: %w", err)
	}
	return nil
}

// RemovePod removes a pod's links whose logs are gone.
func RemovePod(podLogsDir, namespace, pod string) error {
	return remove(podLogsDir, prefix(namespace, pod))
}

// RemoveAll removes all links whose logs are gone.
func RemoveAll(podLogsDir string) error { return remove(podLogsDir, "") }

func remove(podLogsDir, prefix string) error {
	dir := Directory(podLogsDir)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for links to logs: %w", err)
	}
	var failed []error
	for _, e := range entries {
		if e.Type() != fs.ModeSymlink || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		link := filepath.Join(dir, e.Name())
		log, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(log, filepath.Clean(podLogsDir)+string(filepath.Separator)) {
			continue
		}
		if _, err := os.Lstat(log); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("remove the link to a deleted log: %w", err))
		}
	}
	return errors.Join(failed...)
}
