// Package command is the scheduler's command line. The command scheduler calls
// it, and so does the main function of anybody who adds plugins to it (package
// framework); it keeps nothing.
package command

import (
	"github.com/spf13/cobra"

	"kctl/proto/daemon"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/app"
	"kctl/scheduler/internal/config"
)

// Main runs the scheduler with plugins that its configuration may name, besides
// those that come with it, and exits when it has ended.
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
			if options.WriteConfigTo != "" {
				return configuration.WriteTo(options.WriteConfigTo)
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
