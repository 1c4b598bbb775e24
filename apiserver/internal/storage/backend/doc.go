// Package backend opens the store that an API server keeps its objects in: the
// etcd that the flags name, or one of the server's own, in its process.
//
// The server opens one when it starts, waits for it, and closes it last. What is
// stored, and how, is etcd's and encrypt's.
package backend
