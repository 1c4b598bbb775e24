// Package server puts the API server together: storage, resources, the chain of
// filters, handlers, discovery and the housekeeping loops. It runs it until it
// is told to stop, and drains before closing.
//
// The program's main function calls it. New makes the parts, each from those before
// it: the process, the database, the objects in it, the API that serves them, access
// to it, policy, the surface that clients see, and what runs beside the requests: the
// stamps of the relay, the server's presence in its cluster, housekeeping. Each has a file,
// and all embed the process (options, clock, logger, metrics) and nothing else.
// Run starts what runs beside the requests (run.go) and accepts requests once
// everything that decisions are based on has been read (start.go; phases.go lists the
// phases of a server's life). chain.go is the order of the filters, handler.go and
// extensions.go are what is served behind them. It decides nothing about requests
// itself: a rule that appears in a file here belongs in another package.
package server
