// Command apiserver serves the Kubernetes API from an etcd.
package main

import (
	"github.com/spf13/cobra"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/server"
	"kctl/proto/daemon"
)

func main() {
	options := config.Defaults()
	cmd := &cobra.Command{
		Use:   "apiserver",
		Short: "Serves the Kubernetes API from an etcd",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.Complete()
			if err := options.Validate(server.Controllers()); err != nil {
				return &daemon.UsageError{Err: err}
			}
			logger, err := options.Log.Logger()
			if err != nil {
				return &daemon.UsageError{Err: err}
			}
			defer func() { _ = logger.Sync() }() // standard error: nothing to be done about it
			daemon.LogUnused(logger, cmd.Flags())
			return server.Run(cmd.Context(), options, logger)
		},
	}
	options.AddFlags(cmd.Flags())
	daemon.Main(cmd)
}
