// Package cache keeps, for each resource, what etcd holds under its prefix: the
// encoded objects themselves, ready to be written to a client, and the recent
// changes for those who watch. One watch on etcd feeds all of them. It is what
// kube-apiserver calls the watch cache (KEP-2340).
//
// registry calls it; it calls a storage.Reader. It never writes, never decodes
// an object unless a selector asks for a field, and never changes bytes that it
// has handed out.
//
// A change's way through it: feed.go has it from etcd and hands it to the cache
// of its resource, state.go applies it (change.go frames it, expect.go knows it
// already if this server wrote it), ring.go remembers it, audience.go finds who
// has asked for it, and watcher.go delivers it. replay.go reads for a watcher what
// the ring has forgotten.
//
// Readers come by list.go, and by fresh.go, where they wait for a revision;
// select.go and pairs.go say what their selectors mean. follow.go brings in a
// cache that comes to a feed under way, held.go keeps one back that cannot be read.
package cache
