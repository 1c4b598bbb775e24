// Package cache keeps, for each resource, what etcd holds under its prefix: the
// encoded objects, ready to be written to a client, and the recent changes for
// watchers. One watch on etcd, that of a Reflector, serves all of them. It is what kube-apiserver
// calls the watch cache (KEP-2340).
//
// registry calls it; it calls a storage.Reader. It never writes to the store,
// never decodes an object unless a selector asks for a field, and never changes
// bytes that it has handed out.
//
// A change's path through it: reflector.go gets it from etcd and hands it to the cache
// of its resource, apply.go applies it (change.go frames it; expect.go knows it
// already if this server wrote it), ring.go remembers it, watcherset.go finds the
// watchers that asked for it, and watcher.go delivers it. replay.go reads for a
// watcher what the ring has forgotten.
//
// Readers enter by list.go, and wait for a revision in wait.go; selection.go and
// pairs.go evaluate their selectors. join.go lets a cache join a reflector that is
// already running; heldback.go holds back a cache whose objects cannot be read.
package cache
