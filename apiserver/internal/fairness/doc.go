// Package fairness shares the server's capacity out among those who ask: each
// request belongs to a flow of a priority level, has to have a seat there, and
// waits its turn among the flows or is turned away where there is none
// (Kubernetes docs, "API Priority and Fairness"; KEP-1040).
//
// The filter of that name asks it about every request; the server runs the
// Controller. It never holds a lock while a request waits, and knows nothing of
// HTTP.
//
// How its parts share the work: table.go says which flow schema a request
// belongs to, queues.go decides who runs next (without lock or clock of its
// own), level.go lets requests wait for that, share.go works out how many seats
// each level has, demand.go how many it could use, controller.go follows the
// stored objects.
package fairness
