// Package leader lets one of several processes lead, by a Lease in the API
// that the leader renews and the others wait for (API docs, "Leases").
//
// The scheduler and the API server's housekeeping call it. The times are
// upstream's, and so are the records in the Lease: our processes and upstream's
// can stand for the same one.
//
// The leader leads only while it could renew within RenewDeadline, and the
// others wait LeaseDuration, counted on their own clock from the last renewal
// they saw: clocks that disagree do no harm, as long as they run equally fast.
// A holder on the same machine whose process is gone is not waited for.
//
// An election does not fence: a process that was stopped for long may believe
// for a moment that it still leads. What the leader does must be safe then,
// too (a Binding is: the API server takes only one).
package leader
