package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"kctl/proto/core"
)

// Load reads the file of --config, with those of --config-dir merged over it, if
// any, into everything that no flag set.
func (c *Config) Load(fs *pflag.FlagSet) error {
	c.Flags = fs
	if c.ConfigFile == "" && c.ConfigDir == "" {
		return nil
	}
	merged := map[string]any{}
	if c.ConfigFile != "" {
		if err := mergeFile(merged, c.ConfigFile); err != nil {
			return fmt.Errorf("--config=%s: %w", c.ConfigFile, err)
		}
	}
	if c.ConfigDir != "" {
		if err := mergeDir(merged, c.ConfigDir); err != nil {
			return fmt.Errorf("--config-dir=%s: %w", c.ConfigDir, err)
		}
	}
	if len(merged) == 0 { // a directory without files
		return nil
	}
	if err := c.applyObject(merged, fs); err != nil {
		return fmt.Errorf("--config=%s: %w", cmp.Or(c.ConfigFile, c.ConfigDir), err)
	}
	return nil
}

func (c *Config) applyObject(object map[string]any, fs *pflag.FlagSet) error {
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	file, err := decode(data)
	if err != nil {
		return err
	}
	return c.apply(file, fs.Changed)
}

// mergeDir merges the files *.conf of a directory and of those below it, in the
// order of their names (Kubernetes docs, "Kubelet Configuration Directory Merging").
func mergeDir(into map[string]any, dir string) error {
	return filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error { // in lexical order
		if err != nil {
			return err
		}
		if entry.IsDir() || filepath.Ext(path) != ".conf" {
			return nil
		}
		if err := mergeFile(into, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

// mergeFile merges a file over what is there: objects are merged field by
// field, and anything else, including lists, is replaced.
func mergeFile(into map[string]any, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if data, err = yaml.YAMLToJSONStrict(data); err != nil {
		return fmt.Errorf("neither YAML nor JSON: %w", err)
	}
	if _, err := decode(data); err != nil { // each file has to be one by itself
		return err
	}
	object, reading := map[string]any{}, json.NewDecoder(bytes.NewReader(data))
	reading.UseNumber() // as they are written
	if err := reading.Decode(&object); err != nil {
		return err
	}
	merge(into, object)
	return nil
}

func merge(into, over map[string]any) {
	for name, value := range over {
		fields, isObject := value.(map[string]any)
		before, wasObject := into[name].(map[string]any)
		if isObject && wasObject {
			merge(before, fields)
			continue
		}
		into[name] = value
	}
}

// decode reads a KubeletConfiguration strictly.
func decode(data []byte) (*kubeletv1beta1.KubeletConfiguration, error) {
	file := &kubeletv1beta1.KubeletConfiguration{}
	if err := core.DecodeStrict(data, file); err != nil {
		return nil, err
	}
	if file.APIVersion != kubeletv1beta1.SchemeGroupVersion.String() || file.Kind != "KubeletConfiguration" {
		return nil, fmt.Errorf("it is a %s %s; %s KubeletConfiguration is expected",
			file.APIVersion, file.Kind, kubeletv1beta1.SchemeGroupVersion)
	}
	return file, nil
}
