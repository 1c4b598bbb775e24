package certificates

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kctl/proto/pki"
)

// Copied says that a file was written into another directory.
const Copied = "copied"

// Copy writes what a program needs into another directory, at the same paths, so that the
// program need not see the rest. Nobody gets an authority's key by it.
func (d *Directory) Copy(names []string, to string) ([]Change, error) {
	var all []string
	for _, e := range d.Entries {
		all = append(all, e.Name)
	}
	var changes []Change
	for _, name := range names {
		i := slices.Index(all, name)
		if i < 0 {
			return changes, fmt.Errorf("there is no %q to copy; there are %s", name, strings.Join(all, ", "))
		}
		for _, file := range d.shared(d.Entries[i]) {
			change, err := d.copyFile(file, to)
			if err != nil {
				return changes, err
			}
			changes = append(changes, change)
		}
	}
	return changes, nil
}

// shared are an entry's files that others may have, a key before its certificate.
func (d *Directory) shared(e Entry) []string {
	if e.Kubeconfig || e.Authority == "" {
		return []string{d.file(e)}
	}
	return []string{d.keyFile(e), d.file(e)}
}

func (d *Directory) copyFile(from, to string) (Change, error) {
	relative, err := filepath.Rel(d.Dir, from)
	if err != nil {
		return Change{}, err
	}
	change := Change{File: filepath.Join(to, relative), Done: Kept}
	data, err := os.ReadFile(from)
	if err != nil {
		return change, err
	}
	if there, err := os.ReadFile(change.File); err == nil && bytes.Equal(there, data) {
		return change, nil
	}
	if err := os.MkdirAll(filepath.Dir(change.File), 0o755); err != nil {
		return change, err
	}
	change.Done = Copied
	mode := os.FileMode(0o600)
	if filepath.Ext(from) == ".crt" {
		mode = 0o644
	}
	return change, pki.WriteFileMode(change.File, data, mode)
}
