// Package fairness divides the server's capacity among its clients: each
// request belongs to a flow of a priority level, needs a seat there, and waits
// its turn among the flows or is refused if there is none (Kubernetes docs,
// "API Priority and Fairness"; KEP-1040).
//
// The filter of that name calls it for every request; the server runs the
// Controller. It never holds a lock while a request waits, and knows nothing of
// HTTP.
//
// Its parts: table.go finds the flow schema of a request, queues.go decides
// which request runs next (without lock or clock of its own), level.go lets
// requests wait for that, share.go computes how many seats each level has,
// demand.go how many it could use, controller.go follows the stored objects.
package fairness
