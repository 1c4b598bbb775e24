// Package server puts the API server together: storage, resources, the chain of
// filters, handlers, discovery and the housekeeping loops; and runs it until it
// is told to stop, when it drains before it closes.
//
// The program's main function calls it. New assembles (assemble.go, and a file or
// a room below this one for each part that it connects), Run starts what runs
// beside the requests (run.go) and opens the door when everything that decisions
// are based on has been read (start.go; phases.go has what a server goes through).
// chain.go is the order of the filters, handler.go and extensions.go are what is
// served behind them. It decides nothing about requests itself; where a file here
// grows a rule, the rule belongs in another room.
package server
