// Package manifest reads API objects from files, directories, standard input
// and web addresses, as YAML or JSON, one document or many, and remembers for
// errors where each came from.
//
// The verbs' rooms (below command) call it. It checks only that a document is
// an object with a kind: the server judges its content.
package manifest
