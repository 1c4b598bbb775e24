// Package field is how validators report what is wrong where, in Kubernetes' own
// words (k8s.io/apimachinery/pkg/util/validation/field), at no cost if nothing is.
//
// Each step of a path takes an allocation, a plain pod has a hundred of them, and
// nearly all objects are valid. So frequent objects are validated with Twice: first
// without paths, which allocates nothing, and only if something is wrong once more,
// with paths.
//
// Validators of resources use it instead of Kubernetes' package, whose errors it
// shares. It does not decide what is valid.
package field
