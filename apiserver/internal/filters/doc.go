// Package filters holds the links of the chain that every request passes before a
// handler sees it. In order, outermost first (the server's chain.go builds it):
//
//	Begin           what is asked for, audit id, where warnings and stamps go
//	Observe         access log and metrics, after everything else is done
//	Recover         a panic below becomes a 500
//	Pace            nobody takes for ever to send a body or to read an answer
//	Warnings        writes what was warned of into the answer's header
//	Drain           turns away those who come while the server ends
//	StrictTransport, CORS, Goaway   where the flags ask for them
//	AuditRefused    writes down who did not get in
//	Authenticate    who asks
//	Audit           writes down what is asked for and what comes of it
//	Tracing         a span of each request, for a collector, where the flags ask for it
//	Impersonate     as whom, if as somebody else
//	Stream          lets long-running requests off Pace's bounds
//	Deadline        not for too long; long-running requests until the drain
//	Fairness        not too many at once, by turns; or InFlight, where the flags ask for it
//	Authorize       may they
//	Names           no namespace or object is called like a step of a path
//	Relay           keeps the stamps of pods' relays
//
// Both limits come after authentication, as upstream's do, so that
// system:masters get through when all others have to wait.
//
// The server puts the chain together. Filters decide on the request as a whole
// and never on the object in it: that is admission's business.
package filters
