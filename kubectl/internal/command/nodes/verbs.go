package nodes

import (
	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
)

// Verbs are the verbs about nodes.
func Verbs(c *frame.CLI) []*cobra.Command {
	return []*cobra.Command{newCordon(c), newUncordon(c), newDrain(c), newTaint(c)}
}
