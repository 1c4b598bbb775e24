package kustomize

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Options are what a kustomization can't say itself.
type Options struct {
	// Anywhere lets files be read that are not below the directory.
	Anywhere bool
}

// Build makes what the kustomization in a directory describes.
func Build(dir string, o Options) (resmap.ResMap, error) {
	options := krusty.MakeDefaultOptions()
	options.PluginConfig = types.DisabledPluginConfig()
	// Objects come before those that need them, where the kustomization says nothing of it.
	options.Reorder = krusty.ReorderOptionUnspecified
	if o.Anywhere {
		options.LoadRestrictions = types.LoadRestrictionsNone
	}
	show, err := hidePrograms()
	if err != nil {
		return nil, err
	}
	defer show()
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil && strings.Contains(err.Error(), "'git' program") {
		// The library's error is text by the time it comes here: there is nothing to unwrap.
		return nil, fmt.Errorf("%w\nkctl does not run git: clone what is in a repository, and name the directory", err)
	}
	return built, err
}

// YAML is all that the kustomization in a directory describes, as one text.
func YAML(dir string) ([]byte, error) {
	built, err := Build(dir, Options{})
	if err != nil {
		return nil, err
	}
	return built.AsYaml()
}

// hidePrograms keeps the library from running git for what it takes for a
// repository's address, which it does not let its callers forbid: it looks for
// the program on the PATH.
func hidePrograms() (show func(), err error) {
	const name = "PATH"
	before, set := os.LookupEnv(name)
	if err := os.Unsetenv(name); err != nil {
		return nil, fmt.Errorf("hiding programs: %w", err)
	}
	return func() {
		if set {
			_ = os.Setenv(name, before)
		}
	}, nil
}
