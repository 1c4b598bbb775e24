// Package simulated is a CRI v1 runtime in memory: sandboxes and containers
// with a real runtime's states, rules and errors, and no process behind them.
// How long its calls take and how its containers end can be set.
//
// Hollow kubelets run on it, through Connection, and tests that need what a
// real runtime can't do on demand: an event stream, thousands of pods,
// containers that end on time. It touches neither disk nor network; commands in
// its containers succeed without output, and there are no streams.
package simulated
