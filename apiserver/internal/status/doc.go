// Package status makes of an error the Status that clients read (Kubernetes API
// conventions, "Response Status Kind"), in the form that they accept.
//
// Whoever ends a request or a watch with an error calls it. It decides nothing
// about the error: who refuses a request says why.
package status
