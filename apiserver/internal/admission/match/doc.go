// Package match decides whether a webhook or an admission policy selects a
// request: by operation, resource, scope and name, and by the labels of its
// objects and of their namespace (Kubernetes docs, "Dynamic Admission Control",
// "Matching requests").
//
// Packages webhook and policy call it, and the resources of admissionregistration
// warn of rules that it never matches. It uses only what it is given, and reads
// a namespace only if a selector needs its labels.
package match
