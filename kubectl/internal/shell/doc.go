// Package shell writes texts so that a shell reads them as they are, in the command
// lines that kctl advises or shows.
//
// Any package may call it. It runs nothing.
package shell
