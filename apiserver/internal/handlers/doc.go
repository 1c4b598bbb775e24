// Package handlers turns HTTP requests for resources into calls of the
// registry, and the registry's answers into what the client accepts: JSON, YAML
// or protobuf, as the object, as a table row or as metadata only. Each verb has
// its file.
//
// The server installs it behind the filters. It decides nothing about objects:
// the registry has their rules, authz decides on permissions. Reads in JSON
// pass bytes from the cache to the client without decoding them.
package handlers
