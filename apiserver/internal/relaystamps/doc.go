// Package relaystamps keeps the stamps of pods' relays, which `kctl trace` shows.
//
// The relay filter and the server's own watch of pods write, one endpoint
// reads. Everything is in memory and bounded, and nothing depends on it. Each
// server has the stamps of the requests that came to it; an Exchange asks the
// others for theirs.
package relaystamps
