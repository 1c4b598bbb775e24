// Package access tests who gets in and who may do what: each kind of identity,
// each mode of authorization, and how rights and certificates come and go.
package access
