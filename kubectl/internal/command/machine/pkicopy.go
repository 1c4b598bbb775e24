package machine

import (
	"errors"

	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
)

func newPKICopy(c *frame.CLI) *cobra.Command {
	var dir, to string
	cmd := &cobra.Command{
		Use: "copy NAME... --to DIR", Short: "Copy certificates for a program that is to see no others",
		Long: `Copy certificates and kubeconfigs into another directory, for a program that is to see
no others: certificates with their keys, CAs without. Repeat it after each renewal;
running programs pick up the new files by themselves.`,
		Example: `  kctl pki copy ca scheduler-server scheduler --to /srv/scheduler`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the certificates to copy; `kctl pki check` lists them")
			}
			if to == "" {
				return errors.New("--to is required: the directory to copy to")
			}
			changes, err := existingDirectory(dir).Copy(args, to)
			printChanges(c.Out, changes)
			return asOwner(dir, err)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", configDir, "directory of the files")
	cmd.Flags().StringVar(&to, "to", "", "directory to copy to")
	return cmd
}
