// Package configuration reads the configuration of admission plugins in the
// file of --admission-control-config-file (Kubernetes API,
// "AdmissionConfiguration", apiserver.config.k8s.io/v1).
//
// The server reads the file once, when it starts; each plugin decodes its own
// part, strictly: an unknown field is an error.
package configuration

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// versions are the accepted versions of the file.
var versions = []string{"apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"}

// maxBytes bounds the file and each file that it names.
const maxBytes = 1 << 20

// Files are the plugins' configurations by plugin name, as JSON or YAML. A nil
// Files has none.
type Files map[string][]byte

type configurationFile struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Plugins    []pluginEntry `json:"plugins"`
}

type pluginEntry struct {
	Name          string          `json:"name"`
	Path          string          `json:"path"`
	Configuration json.RawMessage `json:"configuration"`
}

// Load reads the file at path; an empty path means no file. Relative paths in
// it are relative to its directory.
func Load(path string) (Files, error) {
	if path == "" {
		return nil, nil
	}
	content, err := read(path)
	if err != nil {
		return nil, err
	}
	var f configurationFile
	if err := yaml.UnmarshalStrict(content, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.Kind != "AdmissionConfiguration" || !slices.Contains(versions, f.APIVersion) {
		return nil, fmt.Errorf("%s: is a %s of %q, and must be an AdmissionConfiguration of %s",
			path, f.Kind, f.APIVersion, strings.Join(versions, " or "))
	}
	files := Files{}
	for i, p := range f.Plugins {
		if files[p.Name], err = p.content(filepath.Dir(path), files); err != nil {
			return nil, fmt.Errorf("%s: plugins[%d] (%s): %w", path, i, p.Name, err)
		}
	}
	return files, nil
}

func (p pluginEntry) content(directory string, known Files) ([]byte, error) {
	inline := len(p.Configuration) > 0 && string(p.Configuration) != "null"
	_, twice := known[p.Name]
	switch {
	case p.Name == "":
		return nil, errors.New("has no name")
	case twice:
		return nil, errors.New("is duplicated")
	case inline && p.Path != "":
		return nil, errors.New("has both a path and a configuration")
	case inline:
		return p.Configuration, nil
	case p.Path == "":
		return nil, errors.New("has neither a path nor a configuration")
	case filepath.IsAbs(p.Path):
		return read(p.Path)
	}
	return read(filepath.Join(directory, p.Path))
}

func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("admission configuration: %w", err)
	}
	if info.Size() > maxBytes {
		return nil, fmt.Errorf("admission configuration: %s is larger than %d bytes", path, maxBytes)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("admission configuration: %w", err)
	}
	return content, nil
}

// Kind is the kind of a plugin's configuration.
type Kind struct {
	Kind     string
	Versions []string // apiVersion: "group/version"
}

// Decode decodes a plugin's configuration into into, which has no apiVersion or
// kind of its own, and reports whether there is one.
func (f Files) Decode(name string, kind Kind, into any) (found bool, err error) {
	content, found := f[name]
	if !found {
		return false, nil
	}
	fields := map[string]json.RawMessage{}
	if err := yaml.UnmarshalStrict(content, &fields); err != nil {
		return true, fmt.Errorf("configuration of %s: %w", name, err)
	}
	var header struct{ APIVersion, Kind string }
	for key, value := range map[string]*string{"apiVersion": &header.APIVersion, "kind": &header.Kind} {
		if raw, ok := fields[key]; ok {
			if err := json.Unmarshal(raw, value); err != nil {
				return true, fmt.Errorf("configuration of %s: %s: %w", name, key, err)
			}
		}
		delete(fields, key)
	}
	if header.Kind != kind.Kind || !slices.Contains(kind.Versions, header.APIVersion) {
		return true, fmt.Errorf("configuration of %s: is a %s of %q, and must be a %s of %s",
			name, header.Kind, header.APIVersion, kind.Kind, strings.Join(kind.Versions, " or "))
	}
	return true, strict(name, fields, into)
}

// DecodeBare decodes the configuration of a plugin that has neither apiVersion
// nor kind.
func (f Files) DecodeBare(name string, into any) (found bool, err error) {
	content, found := f[name]
	if !found {
		return false, nil
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		return true, fmt.Errorf("configuration of %s: %w", name, err)
	}
	return true, nil
}

func strict(name string, fields map[string]json.RawMessage, into any) error {
	content, err := json.Marshal(fields)
	if err == nil {
		err = yaml.UnmarshalStrict(content, into)
	}
	if err != nil {
		return fmt.Errorf("configuration of %s: %w", name, err)
	}
	return nil
}
