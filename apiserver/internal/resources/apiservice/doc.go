// Package apiservice holds the objects that say which server answers for a
// group and version of the API: what may stand in one, what of it may change,
// and how it is printed (Kubernetes API, "APIService v1").
//
// Asking those servers is aggregation's business.
package apiservice
