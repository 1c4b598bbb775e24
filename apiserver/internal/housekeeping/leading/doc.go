// Package leading runs the housekeeping loops while this server leads: of
// several servers on one etcd, one runs them.
//
// internal/server makes it once and runs it; package housekeeping says what the
// loops do, and knows neither flags nor elections.
package leading
