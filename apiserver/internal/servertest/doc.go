// Package servertest starts whole API servers for tests, each with a
// certificate authority and an embedded etcd of its own, and sends requests to
// them as clients do.
//
// The rooms below hold the tests, each about one side of the server; only they
// use this package. What a single package can show is tested in that package.
package servertest
