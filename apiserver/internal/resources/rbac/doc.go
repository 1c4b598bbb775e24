// Package rbac says what is particular about roles and the bindings that grant
// them. Whether a user may grant what a role holds is not decided here.
package rbac
