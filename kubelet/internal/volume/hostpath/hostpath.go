// Package hostpath checks, and makes if asked to, the paths of the host that
// pods mount.
//
// Package volume calls it. It never removes anything: the host's files are not
// the pod's.
package hostpath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/filesystem"
)

// SetUp makes sure that the path is what the source says it is.
func SetUp(source *corev1.HostPathVolumeSource) error {
	kind := ptr.Deref(source.Type, corev1.HostPathUnset)
	if kind == corev1.HostPathUnset {
		return nil
	}
	if err := filesystem.Answers(source.Path); err != nil {
		return fmt.Errorf("hostPath: %w", err)
	}
	switch kind {
	case corev1.HostPathDirectoryOrCreate:
		return makeDirectory(source.Path)
	case corev1.HostPathFileOrCreate:
		return makeFile(source.Path)
	}
	want, ok := kinds[kind]
	if !ok {
		return fmt.Errorf("hostPath type check failed: %s is not a known type", kind)
	}
	return check(source.Path, want.is, want.name)
}

// check says in upstream's words if the path is not what it should be, and what it
// is.
func check(path string, is func(fs.FileMode) bool, want string) error {
	info, err := os.Stat(path)
	if err == nil && is(info.Mode()) {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("path %q does not exist", path)
	}
	if err == nil {
		for kind, of := range kinds {
			if of.is(info.Mode()) {
				return fmt.Errorf("hostPath type check failed: %s is not %s, it's a %s", path, want, kind)
			}
		}
		err = fmt.Errorf("it is a %s", info.Mode().Type())
	}
	return fmt.Errorf("hostPath type check failed, %s is not %s, unable to determine its type: %w", path, want, err)
}

var kinds = map[corev1.HostPathType]struct {
	name string
	is   func(fs.FileMode) bool
}{
	corev1.HostPathDirectory: {"a directory", fs.FileMode.IsDir},
	corev1.HostPathFile:      {"a file", fs.FileMode.IsRegular},
	corev1.HostPathSocket:    {"a socket file", func(m fs.FileMode) bool { return m&fs.ModeSocket != 0 }},
	corev1.HostPathCharDev:   {"a character device", func(m fs.FileMode) bool { return m&fs.ModeCharDevice != 0 }},
	corev1.HostPathBlockDev:  {"a block device", func(m fs.FileMode) bool { return m&fs.ModeDevice != 0 && m&fs.ModeCharDevice == 0 }},
}

func makeDirectory(path string) error {
	err := os.MkdirAll(path, 0o755)
	if info, statErr := os.Stat(path); statErr == nil && !info.IsDir() {
		return check(path, fs.FileMode.IsDir, "a directory")
	}
	if err != nil {
		return fmt.Errorf("hostPath: making the directory: %w", err)
	}
	return nil
}

func makeFile(path string) error {
	_, err := os.Stat(path)
	if err == nil {
		return check(path, fs.FileMode.IsRegular, "a file")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hostPath: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("hostPath: making the file: %w", err)
	}
	if err != nil {
		return nil
	}
	return file.Close()
}
