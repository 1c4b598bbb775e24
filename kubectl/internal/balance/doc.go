// Package balance spreads TCP connections over several API servers, without
// reading what goes through them: TLS is between clients and servers. It asks
// each server again and again whether it answers, gives new connections to those
// only that do, and ends the connections to one that has stopped, so that clients
// come back and get another.
//
// The command balancer calls it. It holds no keys and knows no users.
package balance
