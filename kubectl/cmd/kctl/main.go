// Command kctl is the command line of the project: pods and nodes on Kubernetes API
// servers, its own and upstream's alike.
package main

import (
	"os"

	"kctl/kubectl/internal/command"
	"kctl/kubectl/internal/command/frame"
)

func main() {
	os.Exit(command.Main(os.Args, frame.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
