package generate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/proto/core"
)

// Namespace makes a namespace.
func Namespace(name string) *core.Namespace {
	return &core.Namespace{TypeMeta: typeMeta("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// ServiceAccount makes a service account.
func ServiceAccount(name string) *core.ServiceAccount {
	return &core.ServiceAccount{TypeMeta: typeMeta("ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func typeMeta(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

// Data says where the keys of a config map or secret come from.
type Data struct {
	Literals []string // key=value
	Files    []string // path, key=path, or a directory
	EnvFiles []string // files of key=value lines
}

// ConfigMap makes a config map; values that are not UTF-8 become binary data.
func ConfigMap(name string, from Data) (*core.ConfigMap, error) {
	pairs, err := from.read()
	if err != nil {
		return nil, err
	}
	out := &core.ConfigMap{TypeMeta: typeMeta("ConfigMap"), ObjectMeta: metav1.ObjectMeta{Name: name}}
	for key, value := range pairs {
		if utf8.Valid(value) {
			if out.Data == nil {
				out.Data = map[string]string{}
			}
			out.Data[key] = string(value)
			continue
		}
		if out.BinaryData == nil {
			out.BinaryData = map[string][]byte{}
		}
		out.BinaryData[key] = value
	}
	return out, nil
}

// Secret makes a secret of a type, Opaque by default.
func Secret(name, kind string, from Data) (*core.Secret, error) {
	pairs, err := from.read()
	if err != nil {
		return nil, err
	}
	out := &core.Secret{TypeMeta: typeMeta("Secret"), ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretType(kind)}
	if len(pairs) > 0 {
		out.Data = pairs
	}
	return out, nil
}

func (d Data) read() (map[string][]byte, error) {
	if len(d.EnvFiles) > 0 && len(d.Files)+len(d.Literals) > 0 {
		return nil, errors.New("from-env-file cannot be combined with from-file or from-literal")
	}
	pairs := map[string][]byte{}
	add := func(key string, value []byte) error {
		if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
			return fmt.Errorf("%q is not valid key name: %s", key, strings.Join(problems, "; "))
		}
		if _, twice := pairs[key]; twice {
			return fmt.Errorf("cannot add key %q, another key by that name already exists", key)
		}
		pairs[key] = value
		return nil
	}
	for _, literal := range d.Literals {
		key, value, ok := strings.Cut(literal, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("invalid literal source %v, expected key=value", literal)
		}
		if err := add(key, []byte(value)); err != nil {
			return nil, err
		}
	}
	for _, source := range d.Files {
		if err := readSource(source, add); err != nil {
			return nil, err
		}
	}
	for _, file := range d.EnvFiles {
		if err := readEnvFile(file, add); err != nil {
			return nil, err
		}
	}
	return pairs, nil
}

func readSource(source string, add func(string, []byte) error) error {
	key, path, named := strings.Cut(source, "=")
	if !named {
		key, path = filepath.Base(source), source
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("error reading %s: %w", path, err)
	}
	if !info.IsDir() {
		return readInto(key, path, add)
	}
	if named {
		return fmt.Errorf("cannot give a key name for a directory path %q", path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("error listing files in %s: %w", path, err)
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			if err := readInto(entry.Name(), filepath.Join(path, entry.Name()), add); err != nil {
				return err
			}
		}
	}
	return nil
}

func readInto(key, path string, add func(string, []byte) error) error {
	value, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("error reading %s: %w", path, err)
	}
	return add(key, value)
}

func readEnvFile(path string, add func(string, []byte) error) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("error reading %s: %w", path, err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimLeft(lines.Text(), " \t")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			value = os.Getenv(key)
		}
		if err := add(key, []byte(value)); err != nil {
			return fmt.Errorf("%s: line %d: %w", path, n, err)
		}
	}
	return lines.Err()
}
