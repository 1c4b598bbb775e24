// Package kustomize makes objects of a kustomization: a directory whose
// kustomization.yaml says which files to take and what to change in them
// (Kubernetes docs, "Declarative Management of Kubernetes Objects Using
// Kustomize"). Kustomize's own library does the work.
//
// Package command calls it, for `kctl kustomize` and -k, and package manifest to know its
// files by their names. It runs git for
// repositories that a kustomization names, and no other program: no helm, no
// plugins and no functions. It reads files below the directory and what they name,
// and fetches files that a kustomization names by web address.
package kustomize
