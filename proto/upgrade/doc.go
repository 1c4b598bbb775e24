// Package upgrade lets proxies forward upgraded connections (SPDY, WebSocket):
// what either side sent before it left reaches the other, and soon after that
// the connection is closed.
//
// Programs that proxy streams call it. It knows nothing about what is sent on them.
package upgrade
