package environment

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// fileKey is the value of a key in a file that the pod's containers wrote
// (KEP-3721); nil for an optional one that does not exist. If there are no files at
// all, every value is empty.
func (m *builder) fileKey(ref *corev1.FileKeySelector) (*string, error) {
	if m.ReadFile == nil {
		return new(string), nil
	}
	data, err := m.ReadFile(ref.VolumeName, ref.Path)
	if errors.Is(err, fs.ErrNotExist) && ptr.Deref(ref.Optional, false) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("fileKeyRef: %w", err)
	}
	value, found, err := lookUp(string(data), ref.Key)
	if err != nil {
		return nil, fmt.Errorf("fileKeyRef: %s: %w", ref.Path, err)
	}
	// Like kubelet 1.37 (measured), which treats an empty value as none.
	if found && value != "" {
		return &value, nil
	}
	if ptr.Deref(ref.Optional, false) {
		return nil, nil
	}
	return nil, fmt.Errorf("environment variable key %q not found in file %q", ref.Key, ref.Path)
}

// lookUp finds a key in such a file, whose syntax is in the Kubernetes docs
// ("Define Environment Variable Values Using An Init Container"): lines of
// KEY='value', the value as it is up to the next quote, over several lines if
// need be; and comments. Errors don't show values.
func lookUp(text, key string) (value string, found bool, err error) {
	line := 1
	for text != "" {
		at := line
		first, rest, _ := strings.Cut(text, "\n")
		if trimmed := strings.TrimSpace(first); trimmed == "" || strings.HasPrefix(trimmed, "#") {
			text, line = rest, line+1
			continue
		}
		name, after, ok := strings.Cut(first, "=")
		name = strings.TrimLeft(name, " \t")
		switch {
		case !ok || name == "":
			return "", false, fmt.Errorf("line %d is not KEY='value'", at)
		case strings.ContainsAny(name, " \t"):
			return "", false, fmt.Errorf("line %d: there may be no space before '='", at)
		case !strings.HasPrefix(after, "'"):
			return "", false, fmt.Errorf("line %d: the value is not in single quotes", at)
		}
		_, after, _ = strings.Cut(text, "='")
		value, after, ok = strings.Cut(after, "'")
		if !ok {
			return "", false, fmt.Errorf("line %d: the quote is not closed", at)
		}
		tail, rest, _ := strings.Cut(after, "\n")
		if content := strings.TrimSpace(tail); content != "" && (!strings.HasPrefix(content, "#") ||
			content == strings.TrimRight(tail, " \t\r")) {
			return "", false, fmt.Errorf("line %d: there is something behind the closing quote", at)
		}
		if name == key {
			return value, true, nil
		}
		text, line = rest, at+strings.Count(value, "\n")+1
	}
	return "", false, nil
}
