// Package servertest starts whole API servers for tests, each with an authority
// and an embedded etcd of its own, and makes requests to them as clients do.
//
// The rooms below hold the tests, each about one side of the server; only they
// use it. What can be seen of one package alone is tested there.
package servertest
