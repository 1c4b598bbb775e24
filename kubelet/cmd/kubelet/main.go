// Command kubelet runs the pods of one node: it takes them from an API server,
// from files and from a URL, and keeps them running in a CRI runtime.
package main

import (
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/kubelet"
	"kctl/proto/daemon"
)

func main() {
	c := config.New()
	cmd := &cobra.Command{
		Use:   "kubelet",
		Short: "Runs the pods of one node",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.Load(cmd.Flags()); err != nil {
				return &daemon.UsageError{Err: err}
			}
			if err := c.Validate(); err != nil {
				return &daemon.UsageError{Err: err}
			}
			logger, err := c.Log.Logger()
			if err != nil {
				return &daemon.UsageError{Err: err}
			}
			daemon.LogUnused(logger, cmd.Flags())
			if err := c.Process.Apply(logger); err != nil {
				return err
			}
			// Containers of users other than root must be able to read what is written
			// for them (/etc/hosts, volumes' files), whatever umask the starting shell
			// had.
			syscall.Umask(0o022)
			k, err := kubelet.New(cmd.Context(), c, clock.RealClock{}, logger, daemon.NewRegistry())
			if err != nil {
				return err
			}
			return k.Run(cmd.Context())
		},
	}
	c.AddFlags(cmd.Flags())
	cmd.AddCommand(hollowCommand())
	daemon.Main(cmd)
}
