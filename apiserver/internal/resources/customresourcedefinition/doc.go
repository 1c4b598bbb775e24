// Package customresourcedefinition holds the definitions of custom resources:
// what may stand in one, what of it may change, and how it is printed.
//
// Serving what is defined is customresources' business.
package customresourcedefinition
