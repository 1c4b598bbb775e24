// Package cache keeps, for each resource, what etcd holds under its prefix: the
// encoded objects themselves, ready to be written to a client, and the recent
// changes for those who watch. One watch on etcd feeds all of them. It is what
// kube-apiserver calls the watch cache (KEP-2340).
//
// registry calls it; it calls a storage.Reader. It never writes, never decodes
// an object unless a selector asks for a field, and never changes bytes that it
// has handed out.
//
// How its parts share the work: feed.go keeps all caches in step with etcd,
// follow.go brings a later one in, held.go keeps one back that cannot be read,
// state.go applies changes to it, ring.go remembers the recent ones, fresh.go
// lets readers wait for a revision, list.go reads, watcher.go serves one watch.
package cache
