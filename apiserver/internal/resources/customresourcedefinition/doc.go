// Package customresourcedefinition holds the definitions of custom resources:
// their validation, what of them may change, and how they are printed.
//
// Package customresources serves what they define.
package customresourcedefinition
