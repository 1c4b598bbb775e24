// Package upgrade lets proxies pass upgraded connections (SPDY, WebSocket) on:
// what either side has said before it left reaches the other, and little later
// nothing is left of the connection.
//
// Programs that proxy streams call it. It knows nothing of what is said on them.
package upgrade
