// Command scheduler finds a node for every pod that has none.
package main

import "kctl/scheduler/command"

func main() { command.Main(nil) }
