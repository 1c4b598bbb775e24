// Package access tests authentication and authorization: each kind of identity,
// each mode of authorization, and how rights and certificates come and go.
package access
