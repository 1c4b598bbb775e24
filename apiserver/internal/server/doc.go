// Package server puts the API server together: storage, resources, the chain of
// filters, handlers, discovery and the housekeeping loops. It runs it until it
// is told to stop, and drains before closing.
//
// The program's main function calls it. New assembles (assemble.go, and a file or
// a subpackage for each part that it connects), Run starts what runs beside the
// requests (run.go) and accepts requests once everything that decisions are based
// on has been read (start.go; phases.go lists the phases of a server's life).
// chain.go is the order of the filters, handler.go and extensions.go are what is
// served behind them. It decides nothing about requests itself: a rule that
// appears in a file here belongs in another package.
package server
