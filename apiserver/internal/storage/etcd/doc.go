// Package etcd keeps objects in etcd, under upstream's keys: it is the
// storage.Interface that everything else stands on. It also runs the embedded
// single-member etcd of a server without an external one, and compacts old
// revisions.
//
// The API server's start-up code builds it; registry and storage/cache use it
// through storage.Interface. It knows nothing of resources: to it a value is
// bytes, apart from the resourceVersion it sets and what upstream stores in
// another form, which it turns into the form of this server.
package etcd
