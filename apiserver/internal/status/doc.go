// Package status turns errors into the Status that clients read (Kubernetes API
// conventions, "Response Status Kind"), and answers requests with it in the form
// that the client accepts.
//
// Code that ends a watch or a request with an error calls it. It decides nothing
// about the error.
package status
