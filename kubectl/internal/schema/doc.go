// Package schema reads what a server says of its kinds in OpenAPI v3: which
// fields they have, what those mean (`kctl explain`), and by which keys their
// lists are merged (`kctl apply`, `kctl edit`).
//
// Package command calls it. It asks the server for one document a group and
// version, and never reads or changes objects.
package schema
