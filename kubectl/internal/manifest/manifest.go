package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxBytes bounds one source. A cluster's objects are at most a few MiB each;
// anything larger than this is a mistake that must not exhaust the memory.
const maxBytes = 256 << 20

// Object is an object and where it was written.
type Object struct {
	*unstructured.Unstructured
	Source string // a file name, an address, or "STDIN"
	Line   int    // where its document begins
}

// Reader reads from what users name with -f.
type Reader struct {
	Rules
	Stdin     io.Reader
	HTTP      *http.Client
	Recursive bool
}

// Read returns the objects of all sources, in order. Lists are split into their
// items. With an error it also returns the objects of the files that could be
// read; none, if a source does not exist.
func (r *Reader) Read(ctx context.Context, sources []string) ([]Object, error) {
	var all []Object
	var unread []error
	stdin := false
	for _, source := range sources {
		var objects []Object
		var err error
		switch {
		case source == "-":
			if stdin {
				return nil, errors.New("standard input cannot be used for multiple arguments")
			}
			stdin = true
			objects, err = r.read(r.Stdin, "STDIN")
		case strings.HasPrefix(source, "http://"), strings.HasPrefix(source, "https://"):
			objects, err = r.readURL(ctx, source)
		default:
			objects, err = r.readPath(source)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all, unread = append(all, objects...), append(unread, err)
	}
	return all, errors.Join(unread...)
}

func (r *Reader) readURL(ctx context.Context, address string) ([]Object, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("the URL passed to filename %q is not valid: %w", address, err)
	}
	response, err := r.HTTP.Do(request)
	if err != nil {
		return nil, fmt.Errorf("unable to read URL %q: %w", address, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("unable to read URL %q, server reported %s, status code=%d", address, response.Status, response.StatusCode)
	}
	return r.read(response.Body, address)
}

func (r *Reader) readPath(path string) ([]Object, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &missingError{path}
	}
	if err != nil {
		return nil, fmt.Errorf("the path %q cannot be accessed: %w", path, err)
	}
	if !info.IsDir() {
		return r.readFile(path)
	}
	return r.readDirectory(path)
}

// missingError says that there is nothing of that name.
type missingError struct{ path string }

func (e *missingError) Error() string { return fmt.Sprintf("the path %q does not exist", e.path) }

// Unwrap makes it an fs.ErrNotExist.
func (e *missingError) Unwrap() error { return fs.ErrNotExist }

func (r *Reader) readDirectory(path string) ([]Object, error) {
	var all []Object
	var unread []error
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if file != path && !r.Recursive {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(file) {
		case ".json", ".yaml", ".yml":
			objects, err := r.readFile(file)
			all, unread = append(all, objects...), append(unread, err)
		}
		return nil
	})
	if err == nil {
		err = errors.Join(unread...)
	}
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("error reading [%s]: recognized file extensions are [.json .yaml .yml]", path)
	}
	return all, err
}

func (r *Reader) readFile(path string) ([]Object, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the path %q cannot be accessed: %w", path, err)
	}
	defer file.Close()
	return r.read(file, path)
}

func (r *Reader) read(from io.Reader, source string) ([]Object, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", source, err)
	}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%s is larger than %d MiB", source, maxBytes>>20)
	}
	return r.Parse(data, source)
}
