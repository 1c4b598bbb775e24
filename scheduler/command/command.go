// Package command is the scheduler's command line. The command scheduler calls
// it, and so does the main function of anyone who adds plugins (package
// framework). It holds no state.
package command

import (
	"github.com/spf13/cobra"

	"kctl/proto/daemon"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/app"
	"kctl/scheduler/internal/config"
)

// Main runs the scheduler and exits when it has ended. Its configuration may
// name the given plugins, besides the built-in ones.
func Main(plugins map[string]framework.Factory) {
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
			daemon.LogUnused(logger, cmd.Flags())
			return app.Run(cmd.Context(), options, configuration, plugins, logger)
		},
	}
	options.AddFlags(cmd.Flags())
	daemon.Main(cmd)
}
