package pods

import (
	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
)

// Verbs are the verbs about pods.
func Verbs(c *frame.CLI) []*cobra.Command {
	return []*cobra.Command{newRun(c), newLogs(c), newExec(c), newAttach(c), newCopy(c), newDebug(c), newPortForward(c), newTrace(c)}
}
