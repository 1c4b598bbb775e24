// Package raw reads and changes single fields of an encoded object without
// decoding the rest of it. It keeps the path from etcd to a watcher free of
// decoding.
//
// storage/etcd and storage/cache call it; structural walks through objects with its
// Skip functions, which check no more than they must. It takes well-formed JSON objects as
// the API server itself encodes them and returns an error for anything else; it
// never repairs, and never changes the bytes it is given.
package raw
