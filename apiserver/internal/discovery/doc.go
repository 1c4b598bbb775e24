// Package discovery tells clients what is served: the groups, versions and
// resources, in the documents of old (APIGroupList, APIResourceList) and in the
// aggregated one that newer clients ask for (apidiscovery.k8s.io/v2).
//
// The server installs it. What the server itself serves does not change while
// it runs; custom resources and what other servers serve come and go, and the
// documents are encoded anew when somebody asks after a change.
package discovery
