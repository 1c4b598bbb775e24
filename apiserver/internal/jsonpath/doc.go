// Package jsonpath finds values in JSON by the paths that definitions of custom
// resources have for their columns (Kubernetes docs, "JSONPath Support"):
// names, indexes, slices, wildcards, descent and filters.
//
// customresources compiles a path once and asks it of every object. A path that
// finds nothing is no error.
package jsonpath
