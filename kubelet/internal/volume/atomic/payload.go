package atomic

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// The limits of a path in a payload: those of the API.
const (
	maxPathLength = 4096
	maxNameLength = 255
)

// File is what one path of a payload holds.
type File struct {
	Data []byte
	Mode int32
	// User owns the file; nil leaves it to the kubelet's own.
	User *int64
}

// Payload is a directory's whole content: slash-separated relative paths.
type Payload map[string]File

// validate returns what is wrong with the payload's paths: a path must be
// relative, stay inside the directory, and not use the writer's own names (all
// that begin with "..").
func (p Payload) validate() error {
	for path := range p {
		if err := validatePath(path); err != nil {
			return err
		}
	}
	for path := range p {
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			if _, ok := p[dir]; ok {
				return fmt.Errorf("invalid path %q: %q is a file of the same volume", path, dir)
			}
		}
	}
	return nil
}

func validatePath(path string) error {
	switch {
	case path == "":
		return errors.New("invalid path: must not be empty")
	case filepath.IsAbs(path):
		return fmt.Errorf("invalid path %q: must be relative", path)
	case len(path) > maxPathLength:
		return fmt.Errorf("invalid path: %d bytes, at most %d are allowed", len(path), maxPathLength)
	case strings.HasPrefix(path, ".."):
		return fmt.Errorf("invalid path %q: must not begin with '..'", path)
	case filepath.Clean(path) != path: // as with ".." in it
		return fmt.Errorf("invalid path %q: must be written as %q", path, filepath.Clean(path))
	}
	for part := range strings.SplitSeq(path, "/") {
		if len(part) > maxNameLength {
			return fmt.Errorf("invalid path %q: a part is longer than %d bytes", path, maxNameLength)
		}
	}
	return nil
}

// tops are the first parts of the payload's paths: the names that users see in
// the directory.
func (p Payload) tops() sets.Set[string] {
	tops := sets.Set[string]{}
	for path := range p {
		top, _, _ := strings.Cut(path, "/")
		tops.Insert(top)
	}
	return tops
}
