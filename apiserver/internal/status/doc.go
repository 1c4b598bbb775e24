// Package status makes of an error the Status that clients read (Kubernetes API
// conventions, "Response Status Kind").
//
// Whoever ends a watch or a request with an error calls it. It decides nothing
// about the error, who refuses a request says why; and it answers nobody: that is
// what internal/failure does.
package status
