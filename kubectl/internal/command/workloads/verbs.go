package workloads

import (
	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
)

// Verbs are the verbs about what runs pods.
func Verbs(c *frame.CLI) []*cobra.Command {
	return []*cobra.Command{newSet(c), newScale(c), newAutoscale(c), newRollout(c), newExpose(c)}
}
