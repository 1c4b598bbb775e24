// Package logs reads the log files that the container runtime writes: lines of
// time, stream, P or F (part of a line, or its end), and text, in files that
// the kubelet moves away when they have grown.
//
// The kubelet's server calls it, and rooms that need the end of a complete log.
// The way through the room: Open (is there a log) → complete (is the last that an
// ended container said in it) → findTail (where the last lines begin) → follower
// (what is new, and in which file) → writer (which of it the caller wants, and in
// what form).
//
// It never writes, moves or removes a log, and never asks the runtime: callers
// tell it whether a container still runs.
package logs
