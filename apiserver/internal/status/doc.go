// Package status turns an error into the Status that clients read (Kubernetes
// API conventions, "Response Status Kind").
//
// Code that ends a watch or a request with an error calls it. It decides nothing
// about the error, and writes no answer: internal/failure does.
package status
