package change

import (
	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
)

// Verbs are the verbs that change objects.
func Verbs(c *frame.CLI) []*cobra.Command {
	return []*cobra.Command{newApply(c), newDelete(c), newLabel(c), newAnnotate(c), newPatch(c), newReplace(c), newEdit(c), newDiff(c)}
}
