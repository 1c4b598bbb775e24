// Package registry keeps the objects of every resource by the same rules: a
// generic Store over storage and its cache, and a Strategy per resource for
// what is particular to it.
//
// Handlers, admission plugins and housekeeping loops call it. It knows nothing
// of HTTP.
package registry
