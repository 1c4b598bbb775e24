// Package frame is the base of every verb of kctl: where it reads and writes, the
// server that it talks to (cli.go, transport.go), the flags that say how a result
// is printed (output.go), and what users read when something fails, with the exit
// code (errors.go).
//
// Every other room of the command line calls it. It knows no verb, and nothing
// about which objects are meant; that is package lookup's task.
package frame
