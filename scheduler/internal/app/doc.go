// Package app puts the scheduler together and runs it: client, reflectors,
// queue, cache, reporter, health port, election, cycle. The command calls it.
// It owns every goroutine's start and end, and decides nothing about pods.
package app
