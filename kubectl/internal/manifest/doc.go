// Package manifest reads API objects from files, directories, standard input
// and web addresses, as YAML or JSON, one document or many, and remembers for
// errors where each came from.
//
// Package command calls it. It checks no more than that a document is an object
// with a kind: what is in it is for the server to judge.
package manifest
