package kustomize

import (
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Options are what a kustomization can't say itself.
type Options struct {
	// Anywhere allows reading files outside the directory.
	Anywhere bool
}

// Build makes what the kustomization in a directory describes.
func Build(dir string, o Options) (resmap.ResMap, error) {
	options := krusty.MakeDefaultOptions()
	options.PluginConfig = types.DisabledPluginConfig()
	// Objects come before those that need them, unless the kustomization sets the order.
	options.Reorder = krusty.ReorderOptionUnspecified
	if o.Anywhere {
		options.LoadRestrictions = types.LoadRestrictionsNone
	}
	disk := &guarded{FileSystem: filesys.MakeFsOnDisk(), targets: map[string]bool{}}
	if err := disk.check(dir); err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(options).Run(disk, dir)
	if disk.refused != nil {
		return nil, disk.refused
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
