// Package request holds what a request asks for and its user, and carries both
// in the request's context.
//
// The filters write it, everything after them reads it. It decides nothing.
package request
