// Package frame is what every verb of kctl stands on: where it reads and writes,
// the server it speaks to (cli.go, transport.go), the flags that say how a result
// is printed (output.go), and what users read when something fails, with the exit
// code (errors.go).
//
// Every other room of the command line calls it. It knows no verb, and nothing of
// which objects are meant: that is package lookup's.
package frame
