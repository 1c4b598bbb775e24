// Package logs reads the log files that the container runtime writes: lines of
// time, stream, P or F (part of a line, or its end), and text, in files that
// the kubelet moves away when they have grown.
//
// The kubelet's server calls it, and who wants the end of a log that is complete.
// The way through the room: Open (is there a log) → complete (is the last that an
// ended container said in it) → findTail (where the last lines begin) → follower
// (what is new, and in which file) → writer (what of it is wanted, as the caller
// wants it).
//
// It never writes, moves or removes a log, and never asks the runtime: whether
// a container still runs it is told.
package logs
