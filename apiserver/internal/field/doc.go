// Package field is how validators tell what is wrong where, in Kubernetes' own
// words (k8s.io/apimachinery/pkg/util/validation/field), at no cost where nothing is.
//
// Each step along a path is a piece of memory, there are a hundred steps to a plain
// pod, and nearly all objects are right. So what is created and changed often is
// looked at by Twice: first nowhere in particular, which takes no memory, and only
// where something is wrong once more, to say where.
//
// Validators of resources use it in the place of the other; what the two pass each
// other are errors, which are the same. It decides nothing about what is right.
package field
