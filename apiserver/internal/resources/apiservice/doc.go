// Package apiservice holds the objects that say which server serves a group and
// version of the API: their validation, what of them may change, and how they
// are printed (Kubernetes API, "APIService v1").
//
// Package aggregation calls those servers.
package apiservice
