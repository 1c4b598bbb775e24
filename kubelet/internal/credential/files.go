package credential

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Files are where a node's own Docker configuration may be.
type Files struct {
	configs, old []string
}

// NewFiles returns the places where upstream's kubelet looks: its own directory,
// where it was started, the user's home, and the root.
func NewFiles(rootDir, home string) *Files {
	f := &Files{}
	for _, dir := range []string{rootDir, ".", filepath.Join(home, ".docker"), "/.docker"} {
		f.configs = append(f.configs, filepath.Join(dir, "config.json"))
	}
	for _, dir := range []string{rootDir, ".", home, "/"} {
		f.old = append(f.old, filepath.Join(dir, ".dockercfg"))
	}
	return f
}

// read reads the first file that exists. It does so for each pull, which takes
// much longer anyway, so that a new password needs no restart.
func (f *Files) read() ([]registryCredential, error) {
	found, err := readFirst(f.configs, readConfig)
	if found != nil || err != nil {
		return found, err
	}
	return readFirst(f.old, readOldConfig)
}

func readFirst(paths []string, read func(name string, data []byte) ([]registryCredential, error)) ([]registryCredential, error) {
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the node's registry credentials: %w", err)
		}
		return read(path, data)
	}
	return nil, nil
}
