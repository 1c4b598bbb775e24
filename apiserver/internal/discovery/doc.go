// Package discovery tells clients what is served: the groups, versions and
// resources, in the traditional documents (APIGroupList, APIResourceList) and
// in the aggregated one that newer clients ask for (apidiscovery.k8s.io/v2).
//
// The server installs it. What the server itself serves does not change while
// it runs; custom resources and other servers' resources come and go, and the
// documents are encoded again at the first request after a change.
package discovery
