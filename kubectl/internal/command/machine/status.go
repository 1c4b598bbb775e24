package machine

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kctl/kubectl/internal/cluster"
	"kctl/kubectl/internal/command/frame"
)

func newStatus(c *frame.CLI) *cobra.Command {
	var dir, output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the state of the cluster on this machine",
		Long: `Show the state of the cluster on this machine: each program with its process, its
memory, and the reason if it is not ready. If --dir is not given and the current
kubeconfig was written by "kctl up", its cluster is shown. The exit code is 1 unless
all programs run and are ready, except those left out by "kctl up --without".`,
		Example: `  kctl status
  kctl status -o json`,
		Args: frame.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir := clusterDir(c, cmd, dir)
			status, err := cluster.GetStatus(cmd.Context(), dir)
			if err != nil {
				return err
			}
			switch output {
			case "json":
				err = printJSON(cmd.OutOrStdout(), status)
			case "":
				err = printStatus(cmd.OutOrStdout(), status)
			default:
				err = fmt.Errorf("--output=%s: only json is supported", output)
			}
			if err != nil {
				return err
			}
			for _, p := range status.Programs {
				if !p.Ready && !p.Without {
					return errors.New("the cluster is not ready")
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", defaultDir, "the cluster's directory")
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json (default: a table)")
	return cmd
}

func printStatus(out io.Writer, status *cluster.Status) error {
	fmt.Fprintf(out, "cluster in %s, node %s\n\n", status.Dir, status.Node)
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "PROGRAM\tREADY\tPID\tUP\tMEMORY\tADDRESS")
	for _, p := range status.Programs {
		ready := "yes"
		switch {
		case p.Without:
			ready = "left out"
		case !p.Ready:
			ready = "no"
		}
		if p.PID == 0 {
			fmt.Fprintf(w, "%s\t%s\t-\t-\t-\t%s\n", p.Name, ready, p.Address)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d MiB\t%s\n", p.Name, ready, p.PID, p.Uptime, p.RSS>>20, p.Address)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range status.Programs {
		if p.Reason != "" {
			fmt.Fprintf(out, "\n%s: %s\n", p.Name, p.Reason)
		}
	}
	return nil
}
