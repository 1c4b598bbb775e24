// Package housekeeper runs the housekeeping loops while this server leads: of
// several servers over one etcd, one keeps house.
//
// internal/server makes it once and runs it; what the loops do is said in
// housekeeping.
package housekeeper
