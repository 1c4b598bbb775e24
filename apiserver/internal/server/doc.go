// Package server puts the API server together: storage, resources, the chain
// of filters, handlers, discovery and the housekeeping loops; and runs it until
// it is told to stop, when it drains before it closes.
//
// The program's main function calls it. It decides nothing about requests
// itself; where a file here grows a rule, the rule belongs in another room.
package server
