package access

import (
	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
)

// Verbs are the verbs about who may do what.
func Verbs(c *frame.CLI) []*cobra.Command {
	return []*cobra.Command{newAuth(c), newCertificate(c)}
}
