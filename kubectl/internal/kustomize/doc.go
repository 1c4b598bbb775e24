// Package kustomize makes objects of a kustomization: a directory whose
// kustomization.yaml says which files to take and what to change in them
// (Kubernetes docs, "Declarative Management of Kubernetes Objects Using
// Kustomize"). The work is that of kustomize's own library.
//
// Package command calls it, for `kctl kustomize` and -k. It runs no program: no
// git, no helm, no plugins and no functions. It reads files below the directory
// and what they name, and sends nothing but requests for files that a
// kustomization names by their web addresses.
package kustomize
