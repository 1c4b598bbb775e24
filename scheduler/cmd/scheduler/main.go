// Command scheduler finds a node for every pod that has none.
package main

import (
	"github.com/spf13/cobra"

	"kctl/proto/daemon"
	"kctl/scheduler/internal/app"
	"kctl/scheduler/internal/config"
)

func main() {
	options := config.NewOptions()
	cmd := &cobra.Command{
		Use:   "scheduler --kubeconfig FILE [flags]",
		Short: "Finds a node for every pod that has none",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			configuration, err := options.Complete()
			if err != nil {
				return &daemon.UsageError{Err: err}
			}
			logger, err := options.Logging.Logger()
			if err != nil {
				return &daemon.UsageError{Err: err}
			}
			defer func() { _ = logger.Sync() }()
			return app.Run(cmd.Context(), options, configuration, logger)
		},
	}
	options.AddFlags(cmd.Flags())
	daemon.Main(cmd)
}
