package pullrecords

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"kctl/proto/pki"
)

// files are in the kubelet's directory: below pulling, an ImagePullIntent for each
// image that is being pulled; below pulled, an ImagePulledRecord for each that
// was.
type files struct{ rootDir string }

const (
	pulling = "pulling"
	done    = "pulled"
	prefix  = "sha256-"
)

func (f files) dir(kind string) string { return filepath.Join(f.rootDir, "image_manager", kind) }

func (f files) path(kind, of string) string {
	return filepath.Join(f.dir(kind), fmt.Sprintf("%s%x", prefix, sha256.Sum256([]byte(of))))
}

// make makes the directories: upstream's kubelet has them from its start, and others wait for them.
func (f files) make() error {
	for _, kind := range []string{pulling, done} {
		if err := os.MkdirAll(f.dir(kind), 0o700); err != nil {
			return fmt.Errorf("records of images: %w", err)
		}
	}
	return nil
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: kubeletv1beta1.SchemeGroupVersion.String(), Kind: kind}
}

func (f files) write(kind, of string, object any) error {
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	if err := f.make(); err != nil { // somebody may have removed them
		return err
	}
	return pki.WriteFile(f.path(kind, of), data)
}

func drop(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("records of images: %w", err)
	}
	return nil
}

// read decodes the file at path; false means that there is none.
func read(path string, object any) (bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, object)
	}
	if err != nil {
		return false, fmt.Errorf("record of an image, %s: %w", path, err)
	}
	return true, nil
}

// all reads each file of a kind; those that can't be read are reported in the error.
func all[T any](f files, kind string) (objects []*T, err error) {
	entries, err := os.ReadDir(f.dir(kind))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	problems := []error{err}
	for _, entry := range entries {
		if !isRecord(entry) {
			continue
		}
		object := new(T)
		if found, err := read(filepath.Join(f.dir(kind), entry.Name()), object); err != nil {
			problems = append(problems, err)
		} else if found {
			objects = append(objects, object)
		}
	}
	return objects, errors.Join(problems...)
}

// isRecord is false for what is being written, or nobody's.
func isRecord(entry fs.DirEntry) bool {
	return strings.HasPrefix(entry.Name(), prefix) && !strings.Contains(entry.Name(), ".")
}

func (f files) count(kind string) (n int, err error) {
	entries, err := os.ReadDir(f.dir(kind))
	for _, entry := range entries {
		if isRecord(entry) {
			n++
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return n, err
}

func (f files) writeIntent(image string) error {
	return f.write(pulling, image, &kubeletv1beta1.ImagePullIntent{TypeMeta: typeMeta("ImagePullIntent"), Image: image})
}

func (f files) dropIntent(image string) error { return drop(f.path(pulling, image)) }

func (f files) hasIntent(image string) bool {
	_, err := os.Stat(f.path(pulling, image))
	return !errors.Is(err, fs.ErrNotExist)
}

func (f files) intents() (images []string, err error) {
	intents, err := all[kubeletv1beta1.ImagePullIntent](f, pulling)
	for _, intent := range intents {
		images = append(images, intent.Image)
	}
	return images, err
}

func (f files) writeRecord(record *kubeletv1beta1.ImagePulledRecord) error {
	record.TypeMeta = typeMeta("ImagePulledRecord")
	return f.write(done, record.ImageRef, record)
}

// record is an image's record; nil if there is none.
func (f files) record(id string) (*kubeletv1beta1.ImagePulledRecord, error) {
	record := &kubeletv1beta1.ImagePulledRecord{}
	if found, err := read(f.path(done, id), record); err != nil || !found {
		return nil, err
	}
	return record, nil
}

func (f files) records() ([]*kubeletv1beta1.ImagePulledRecord, error) {
	return all[kubeletv1beta1.ImagePulledRecord](f, done)
}

func (f files) dropRecord(id string) error { return drop(f.path(done, id)) }
