// Package jsonpath finds values in JSON by the paths in the columns of custom
// resource definitions (Kubernetes docs, "JSONPath Support"): names, indexes,
// slices, wildcards, descent and filters.
//
// customresources compiles a path once and evaluates it on every object. A path
// that finds nothing is no error.
package jsonpath
