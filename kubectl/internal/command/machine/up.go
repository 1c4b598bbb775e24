package machine

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"kctl/kubectl/internal/cluster"
	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/shell"
)

// defaultDir is where the cluster of this machine lives.
const defaultDir = "/var/lib/kctl"

func newUp(c *frame.CLI) *cobra.Command {
	o := cluster.UpOptions{}
	flags := map[string]*string{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster on this machine",
		Long: `Start a cluster on this machine: certificates, kubeconfigs, an image registry, a
containerd of its own, the API server, the scheduler and a kubelet. All files are kept
in --dir.

Run it again to start whatever is not running. Programs that run are left alone; kctl
prints what will change when they are next started, including a newer build. Flags,
--etcd-servers and --without are remembered until they are given again
("--kubelet-flags=" removes them, "--without=" starts all parts). If --dir is not
given and the current kubeconfig was written by "kctl up", its cluster is used.`,
		Example: `  # A cluster in /var/lib/kctl
  kctl up

  # A second one beside it
  kctl up --dir /srv/two --port 7443

  # All but the scheduler, to run one of your own
  kctl up --without=scheduler`,
		Args: frame.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Dir = clusterDir(c, cmd, o.Dir)
			o.PortSet, o.EtcdServersSet = cmd.Flags().Changed("port"), cmd.Flags().Changed("etcd-servers")
			o.WithoutSet = cmd.Flags().Changed("without")
			o.Flags = map[string]string{}
			for part, value := range flags {
				if cmd.Flags().Changed(part + "-flags") {
					o.Flags[part] = *value
				}
			}
			result, err := cluster.Up(cmd.Context(), o, progressTo(cmd))
			if err != nil {
				if partial, ok := errors.AsType[*cluster.PartialError](err); ok {
					dir := shell.Word(partial.Dir)
					fmt.Fprintf(cmd.ErrOrStderr(),
						"What was started runs on: \"kctl up --dir %s\" goes on from there, \"kctl down --dir %s\" takes it away.\n", dir, dir)
				}
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "\nThe cluster is up: %s.", result.Server)
			for _, image := range result.Images {
				fmt.Fprintf(out, " An image to try: %s", image)
			}
			fmt.Fprintln(out)
			if len(result.Without) > 0 && !o.WithoutSet {
				fmt.Fprintf(out, "Left out, as the last time: %s (--without= starts all).\n", strings.Join(result.Without, ", "))
			}
			fmt.Fprintf(out, "export KUBECONFIG=%s\n", shell.Word(result.Kubeconfig))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", defaultDir, "directory for all files of the cluster")
	f.IntVar(&o.Port, "port", cluster.DefaultPort, "port of the API server")
	f.StringVar(&o.NodeName, "node-name", "", "name of this machine's node (default: its host name)")
	f.StringVar(&o.Address, "address", "",
		"address of this machine on which pods and other machines reach the API server and the kubelet (default: loopback only)")
	f.StringVar(&o.EtcdServers, "etcd-servers", "", "comma-separated etcd servers to use (default: an etcd embedded in the API server)")
	f.StringVar(&o.BinDir, "bin-dir", "", "directory of the programs (default: that of kctl)")
	f.StringSliceVar(&o.Without, "without", nil, "parts not to start: registry, containerd, apiserver, scheduler, kubelet")
	for _, part := range cluster.Parts {
		if part != cluster.Registry {
			flags[part] = f.String(part+"-flags", "", "more flags for the "+part)
		}
	}
	return cmd
}

func progressTo(cmd *cobra.Command) cluster.Progress {
	out := cmd.ErrOrStderr()
	file, ok := out.(*os.File)
	return &cluster.Lines{Out: out, Terminal: ok && term.IsTerminal(int(file.Fd())) && frame.Movable()}
}
