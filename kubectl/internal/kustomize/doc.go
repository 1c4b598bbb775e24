// Package kustomize makes objects of a kustomization: a directory whose
// kustomization.yaml says which files to take and what to change in them
// (Kubernetes docs, "Declarative Management of Kubernetes Objects Using
// Kustomize"). The work is that of kustomize's own library.
//
// Package command calls it, for `kctl kustomize` and -k. It runs git for
// what a kustomization names by the address of a repository, and no other program:
// no helm, no plugins and no functions. It reads files below the directory and what
// they name, and asks for files that a kustomization names by their web addresses.
package kustomize
