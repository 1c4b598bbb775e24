package kustomize

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// guarded reads from the disk, and refuses kustomizations that name a repository with a
// ref that git would take for an option: "?ref=--upload-pack=PROGRAM" runs the program.
// Kustomize hands refs to git as they are.
type guarded struct {
	filesys.FileSystem
	refused error // the first refusal; kustomize drops what ReadFile says
	// targets are the files to which links lead that have a kustomization's name.
	targets map[string]bool
}

// CleanedAbs resolves links. Kustomize reads what it returns, under the name that
// this has.
func (g *guarded) CleanedAbs(path string) (filesys.ConfirmedDir, string, error) {
	dir, file, err := g.FileSystem.CleanedAbs(path)
	if err == nil && file != "" && IsKustomization(path) {
		g.targets[dir.Join(file)] = true
	}
	return dir, file, err
}

// IsKustomization tells whether a file has a name by which a directory's kustomization is found.
func IsKustomization(path string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(path))
}

// ReadFile returns a file's content, unless it is a kustomization that is refused.
func (g *guarded) ReadFile(path string) ([]byte, error) {
	data, err := g.FileSystem.ReadFile(path)
	if err != nil || !IsKustomization(path) && !g.targets[path] {
		return data, err
	}
	var content any
	if err := yaml.Unmarshal(data, &content); err != nil {
		return data, nil //nolint:nilerr // kustomize says what is wrong with it
	}
	if err := g.check(content); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

// check looks at nearly all texts of a kustomization, because many fields may name
// repositories, in any spelling.
func (g *guarded) check(content any) error {
	switch content := content.(type) {
	case string:
		if ref := optionIn(content); ref != "" {
			err := fmt.Errorf("%q is refused: git would interpret the ref %q as an option", content, ref)
			if g.refused == nil {
				g.refused = err
			}
			return err
		}
	case []any:
		for _, each := range content {
			if err := g.check(each); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, each := range content {
			if strings.EqualFold(key, "literals") || strings.EqualFold(key, "patch") {
				continue // which are values of users, and name nothing
			}
			if err := g.check(each); err != nil {
				return err
			}
		}
	}
	return nil
}

// optionIn is the ref in a repository's address if it begins like an option, or "".
func optionIn(address string) string {
	for at, c := range address {
		if c != '?' {
			continue
		}
		values, _ := url.ParseQuery(address[at+1:]) // what could be parsed
		for _, ref := range append(values["ref"], values["version"]...) {
			if strings.HasPrefix(strings.TrimSpace(ref), "-") {
				return ref
			}
		}
	}
	return ""
}
