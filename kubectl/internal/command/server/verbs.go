package server

import (
	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
)

// Verbs are the verbs about the server.
func Verbs(c *frame.CLI) []*cobra.Command {
	return []*cobra.Command{newClusterInfo(c), newAPIResources(c), newAPIVersions(c), newProxy(c)}
}
