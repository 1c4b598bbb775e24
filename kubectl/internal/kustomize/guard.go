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
}

// ReadFile returns a file's content, unless it is a kustomization that is refused.
func (g *guarded) ReadFile(path string) ([]byte, error) {
	data, err := g.FileSystem.ReadFile(path)
	if err != nil || !slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(path)) {
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

// check looks at all texts of a kustomization, because many fields may name
// repositories.
func (g *guarded) check(content any) error {
	switch content := content.(type) {
	case string:
		if ref := optionIn(content); ref != "" {
			err := fmt.Errorf("%q is refused: git would take the ref %q for an option", content, ref)
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
		for _, each := range content {
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
