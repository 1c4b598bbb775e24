package command

import "github.com/spf13/cobra"

// clusterVerbs are the verbs for the cluster on this machine.
func clusterVerbs(c *cli) []*cobra.Command {
	return []*cobra.Command{newUp(), newDown(), newStatus(), newPKI(c), newBootstrapToken(c), newJoin(c), newReset(c), newDoctor(c), newRegistry(), newImages()}
}
