// Package rbac holds what is particular to roles and bindings. Whether a user
// may grant a role is not decided here.
package rbac
