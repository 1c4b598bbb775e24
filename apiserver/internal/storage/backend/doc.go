// Package backend opens the store in which an API server keeps its objects: the
// etcd that the flags name, or one embedded in the process.
//
// The server opens it at its start, waits for it, and closes it last. How
// objects are stored is up to packages etcd and encrypt.
package backend
