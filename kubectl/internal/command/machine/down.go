package machine

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"kctl/kubectl/internal/cluster"
	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/shell"
)

func newDown(c *frame.CLI) *cobra.Command {
	o := cluster.DownOptions{}
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove the cluster on this machine",
		Long: `Remove the cluster on this machine: its pods, its programs, every mount, network
namespace, link, rule and cgroup that they created, and then its directory.`,
		Example: `  kctl down

  # Keep what is stored for the next kctl up
  kctl down --keep-data`,
		Args: frame.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Both are meant by somebody, and this can't be undone.
			if used := clusterDir(c, cmd, o.Dir); used != o.Dir {
				return fmt.Errorf("the kubeconfig belongs to the cluster in %s: use --dir to choose which cluster to remove, that one or %s",
					used, o.Dir)
			}
			err := cluster.Down(cmd.Context(), o, progressTo(cmd))
			if partial, ok := errors.AsType[*cluster.PartialError](err); ok {
				again := "kctl down --dir " + shell.Word(partial.Dir)
				if o.KeepData { // which it would not do by itself
					again += " --keep-data"
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "Not all is taken away, and the directory is kept: %q goes on from there.\n", again)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&o.Dir, "dir", defaultDir, "the cluster's directory")
	cmd.Flags().BoolVar(&o.KeepData, "keep-data", false, "keep etcd's data, the certificates and the kubeconfigs")
	return cmd
}
