// Package lookup works out which objects a command line means, by arguments,
// selectors and files (objects.go), and reads, watches and awaits them.
//
// The rooms of the verbs call it. It has no verb of its own, prints nothing but
// warnings, and changes nothing on the server.
package lookup
