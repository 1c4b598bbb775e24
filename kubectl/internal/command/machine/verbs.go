package machine

import (
	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
)

// Verbs are the verbs for the cluster on this machine.
func Verbs(c *frame.CLI) []*cobra.Command {
	return []*cobra.Command{newUp(c), newDown(c), newStatus(c), newPKI(c), newBootstrapToken(c), newJoin(c), newReset(c), newDoctor(c),
		newRegistry(), newImages()}
}
