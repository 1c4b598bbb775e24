package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"kctl/apiserver/internal/configfile"
	"kctl/apiserver/internal/resources/admissionregistration"
	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

// endings are those of the files that are read.
var endings = []string{".yaml", ".yml", ".json"}

var decoder = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// Directory is a directory of manifests.
type Directory struct {
	Path string
	// Kinds are those of the objects that it may hold.
	Kinds []string
}

type file struct {
	path    string
	content []byte
}

// files are those with content, in the order of their names.
func (d Directory) files() ([]file, error) {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains(endings, strings.ToLower(filepath.Ext(entry.Name()))) {
			continue
		}
		path := filepath.Join(d.Path, entry.Name())
		content, err := configfile.Read(path)
		if err != nil {
			return nil, err
		}
		if len(content) > 0 {
			files = append(files, file{path, content})
		}
	}
	return files, nil
}

// contentOf is what all files hold, in a form that has upstream's hash.
func contentOf(files []file) []byte {
	var all bytes.Buffer
	for _, f := range files {
		all.Write(f.content)
		all.WriteByte(0)
	}
	return all.Bytes()
}

// objects are those in the files, ordered by their names.
func (d Directory) objects(files []file) ([]core.Object, error) {
	var all []core.Object
	for _, f := range files {
		found, err := d.objectsOf(f.content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b core.Object) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all, checkTogether(all)
}

// objectsOf are the objects of all documents.
func (d Directory) objectsOf(content []byte) ([]core.Object, error) {
	var all []core.Object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if document = bytes.TrimSpace(document); len(document) == 0 {
			continue
		}
		found, err := d.decode(document)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
}

// decode decodes an object or a list of objects.
func (d Directory) decode(document []byte) ([]core.Object, error) {
	decoded, _, err := decoder.Decode(document, nil, nil)
	if err != nil {
		return nil, err
	}
	if list, ok := decoded.(*corev1.List); ok {
		return d.decodeAll(list.Items)
	}
	if !meta.IsListType(decoded) {
		obj, err := d.accept(decoded)
		return []core.Object{obj}, err
	}
	items, err := meta.ExtractList(decoded)
	if err != nil {
		return nil, err
	}
	var all []core.Object
	for _, item := range items {
		obj, err := d.accept(item)
		if err != nil {
			return nil, err
		}
		all = append(all, obj)
	}
	return all, nil
}

func (d Directory) decodeAll(items []runtime.RawExtension) ([]core.Object, error) {
	var all []core.Object
	for _, item := range items {
		found, err := d.decode(item.Raw)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// accept completes an object, unless its kind does not belong here or it is invalid.
func (d Directory) accept(decoded runtime.Object) (core.Object, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(decoded)
	if err != nil {
		return nil, err
	}
	obj, ok := decoded.(core.Object)
	if !ok || !slices.Contains(d.Kinds, kinds[0].Kind) {
		return nil, fmt.Errorf("a %s of %s is not supported here, only %s",
			kinds[0].Kind, kinds[0].GroupVersion(), strings.Join(d.Kinds, " and "))
	}
	errs, known := admissionregistration.Complete(obj)
	if !known {
		return nil, fmt.Errorf("a %s is not supported here", kinds[0].Kind)
	}
	if err := errs.ToAggregate(); err != nil {
		return nil, fmt.Errorf("%s %q: %w", kinds[0].Kind, obj.GetName(), err)
	}
	if err := check(obj); err != nil {
		return nil, fmt.Errorf("%s %q: %w", kinds[0].Kind, obj.GetName(), err)
	}
	return obj, nil
}
