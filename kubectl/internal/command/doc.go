// Package command is kctl's command line: its root, and below it a room for each
// kind of verb. The root joins the verbs, and has what concerns all of them:
// examples, completion, the user's preferences, and plugins.
//
// The verbs are in the rooms below, one file each:
//
//	read       objects are shown
//	create     objects are made
//	change     objects are changed and removed
//	workloads  what runs pods
//	pods       pods one by one
//	nodes      nodes
//	server     the API server itself
//	access     who may do what
//	settings   kctl's own files
//	machine    the cluster on this machine
//
// They build on frame (streams, server, errors, exit codes), lookup (which objects
// are meant) and send (how a change is sent), which know nothing about them. Verbs
// put flags into the options of the packages that do the work (generate, printer,
// manifest, …), and talk to the server through package proto/rest.
//
// Only cmd/kctl calls it.
package command
