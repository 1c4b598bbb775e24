// Package handlers turns HTTP requests for resources into calls of the
// registry, and the registry's answers into what the client accepts: JSON, YAML
// or protobuf, as the object, as a table row or as metadata only. One file
// holds one verb.
//
// The server installs it behind the filters. It decides nothing about objects:
// their rules are the registry's, permission is authz's. Reads in JSON pass
// bytes from the cache to the client without decoding them.
package handlers
