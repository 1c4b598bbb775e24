package read

import (
	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
)

// Verbs are the verbs that read objects.
func Verbs(c *frame.CLI) []*cobra.Command {
	return []*cobra.Command{newGet(c), newDescribe(c), newEvents(c), newWait(c), newExplain(c), newKustomize(c)}
}
