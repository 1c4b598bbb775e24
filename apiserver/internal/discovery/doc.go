// Package discovery tells clients what is served: the groups, versions and
// resources, in the documents of old (APIGroupList, APIResourceList) and in the
// aggregated one that newer clients ask for (apidiscovery.k8s.io/v2).
//
// The server installs it. What is served does not change while it runs, so
// every document is encoded once.
package discovery
