// Package change holds the verbs that change or remove objects of any kind:
// apply, delete, diff, edit, label, annotate, patch and replace. They share how an
// object is deleted and waited for (delete.go), and how it is applied (apply.go).
//
// Only the root of the command line calls it. What is specific to workloads or
// nodes is not here.
package change
