// Package match tells whether a request is one that a webhook or an admission
// policy is about: by operation, resource, scope and name, and by the labels of
// its objects and of their namespace (Kubernetes docs, "Dynamic Admission
// Control", "Matching requests").
//
// The webhook and policy rooms call it. It looks at nothing but what it is
// given, and asks for a namespace only where a selector needs its labels.
package match
