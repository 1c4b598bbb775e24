package configfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxBytes bounds the size of a file.
const maxBytes = 1 << 20

// apiGroup is that of the kinds.
const apiGroup = "apiserver.config.k8s.io"

// Read returns a file's content.
func Read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxBytes {
		return nil, fmt.Errorf("%s: is larger than %d bytes", path, maxBytes)
	}
	return content, nil
}

// Decode decodes an object of the kind, in one of the versions of apiGroup,
// into into. An unknown or duplicate field is an error that names it.
func Decode(content []byte, kind string, versions []string, into any) error {
	return decode(content, kind, versions, into, false)
}

// DecodeNameless is Decode for a file that can only be of one kind: it needs to say
// neither its kind nor its version, and may be empty.
func DecodeNameless(content []byte, kind string, versions []string, into any) error {
	return decode(content, kind, versions, into, true)
}

func decode(content []byte, kind string, versions []string, into any, nameless bool) error {
	text, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return err
	}
	var header metav1.TypeMeta
	if err := json.UnmarshalCaseSensitivePreserveInts(text, &header); err != nil {
		return err
	}
	group, version, _ := strings.Cut(header.APIVersion, "/")
	isKind := header.Kind == kind || nameless && header.Kind == ""
	isVersion := group == apiGroup && slices.Contains(versions, version) || nameless && header.APIVersion == ""
	if !isKind || !isVersion {
		return fmt.Errorf("is a %s of %q, and must be of kind %s of %s/%s",
			header.Kind, header.APIVersion, kind, apiGroup, strings.Join(versions, " or "))
	}
	strict, err := json.UnmarshalStrict(text, into)
	if err != nil {
		return err
	}
	if len(strict) > 0 {
		return fmt.Errorf("strict decoding error: %w", errors.Join(strict...))
	}
	return nil
}
