// Package schema reads what a server says about its kinds in OpenAPI v3: which
// fields they have, what these mean (`kctl explain`), and by which keys their
// lists are merged (`kctl apply`, `kctl edit`).
//
// The verbs' rooms (below command) call it. It asks the server for one document
// for each group and version, and never reads or changes objects.
package schema
