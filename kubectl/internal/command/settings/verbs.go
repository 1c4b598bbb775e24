package settings

import (
	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
)

// Verbs are the verbs about kctl's own files.
func Verbs(c *frame.CLI) []*cobra.Command {
	return []*cobra.Command{newConfig(c), newKuberc(c)}
}
