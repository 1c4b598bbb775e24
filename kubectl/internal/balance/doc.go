// Package balance spreads TCP connections over several API servers, without
// reading what goes through them: TLS is between clients and servers. It checks
// repeatedly whether each server answers, gives new connections only to those
// that do, and closes the connections to one that has stopped, so that clients
// reconnect to another.
//
// The command balancer calls it. It holds no keys and knows no users.
package balance
