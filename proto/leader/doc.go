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
// If the holder ran on the same machine and its process is gone, nobody waits
// for it.
//
// An election does not fence: a process that was suspended for long may believe
// for a moment that it still leads. What the leader does must be safe even then
// (a Binding is: the API server accepts only one).
package leader
