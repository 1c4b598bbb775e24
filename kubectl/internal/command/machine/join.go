package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kctl/kubectl/internal/bootstrap"
	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/doctor"
)

// nodeFlags are those of join and reset.
func nodeFlags(cmd *cobra.Command, n *bootstrap.Node) {
	f := cmd.Flags()
	f.StringVar(&n.Dir, "dir", configDir, "directory of the node's configuration")
	f.StringVar(&n.RootDir, "root-dir", "/var/lib/kubelet", "the kubelet's directory")
	f.StringVar(&n.Runtime, "cri-socket", "unix:///run/containerd/containerd.sock", "endpoint of the container runtime")
}

func newJoin(c *frame.CLI) *cobra.Command {
	var o bootstrap.Options
	var start string
	cmd := &cobra.Command{
		Use: "join HOST:PORT --token TOKEN --discovery-token-ca-cert-hash HASH", Short: "Make this machine a node of a cluster",
		Long: `Make this machine a node of a cluster. The server is verified by the hash of its CA
before the token is sent to it. Then the machine is checked, the kubelet's files are
written, and systemd, if it runs, starts the kubelet. Run it again to finish a join
that was interrupted.

"kctl token create --print-join-command", on the control plane, prints the command line.`,
		Example: `  kctl join 192.168.10.1:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:0a1b…

  # Without systemd: write the files, and print how to start the kubelet
  kctl join 192.168.10.1:6443 --token … --discovery-token-ca-cert-hash … --start none`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Server = strings.TrimPrefix(args[0], "https://")
			} else if o.Discovery.File == "" {
				return errors.New("specify the API server as HOST:PORT, or use --discovery-file")
			}
			systemd := bootstrap.Systemd()
			switch {
			case start == "systemd" && !systemd:
				return errors.New("--start=systemd: this machine does not run systemd")
			case start == "none":
				systemd = false
			case start != "auto" && start != "systemd":
				return fmt.Errorf("--start=%s: want auto, systemd or none", start)
			}
			o.Now, o.Given = c.Clock.Now(), cmd.Flags().Changed
			return join(cmd.Context(), c, o, systemd)
		},
	}
	nodeFlags(cmd, &o.Node)
	f := cmd.Flags()
	f.StringVar(&o.Token, "token", "", "the bootstrap token")
	f.StringSliceVar(&o.Hashes, "discovery-token-ca-cert-hash", nil, "hash of the cluster's CA, as sha256:HEX; may be repeated")
	f.BoolVar(&o.Unsafe, "discovery-token-unsafe-skip-ca-verification", false, "trust any server that answers, and send it the token")
	f.StringVar(&o.Discovery.File, "discovery-file", "", "kubeconfig with the cluster's server and CA, in place of a hash")
	f.StringVar(&o.NodeName, "node-name", "", "name of the node (default: this machine's host name)")
	f.StringVar(&o.NodeIP, "node-ip", "",
		"IP address of the node, or an IPv4 and an IPv6 address separated by a comma (default: the address of the default route)")
	f.StringVar(&o.NodeNetwork, "node-network", "",
		"let the kubelet set up the network between nodes, with routes or vxlan; it must be the same on all nodes (default: none, "+
			"another network is installed)")
	f.StringSliceVar(&o.ClusterDNS, "cluster-dns", nil, "DNS servers of the cluster, for pods")
	f.StringVar(&o.ClusterDomain, "cluster-domain", "cluster.local", "DNS domain of the cluster")
	f.IntVar(&o.Port, "kubelet-port", 10250, "the kubelet's port")
	f.BoolVar(&o.ServerTLS, "server-tls-bootstrap", true,
		"request the kubelet's serving certificate from the API server; an administrator has to approve it before logs and exec work. If "+
			"false, the kubelet signs its own")
	f.StringSliceVar(&o.Ignore, "ignore-preflight-errors", nil, "names of checks whose failures are ignored, or all")
	f.StringVar(&start, "start", "auto",
		"how the kubelet is started: systemd, none (its command line is printed), or auto (systemd if it runs)")
	return cmd
}

func join(ctx context.Context, c *frame.CLI, o bootstrap.Options, systemd bool) error {
	joined, err := bootstrap.Join(ctx, o)
	if joined != nil {
		for _, check := range joined.Checks {
			if check.Result == doctor.Warn {
				c.Warn("%s: %s%s", check.Name, check.Detail, advice(check))
			}
		}
	}
	if err != nil {
		return err
	}
	if joined.Before {
		fmt.Fprintf(c.Out, "This machine has joined %s before: its kubelet has a certificate that is good.\n", joined.Server)
	}
	if !systemd {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program's own file: %w", err)
		}
		fmt.Fprintf(c.Out, "The kubelet's files are in %s. Start it by\n\n  %s\n", o.Dir, strings.Join(o.Node.Command(self, joined.Args), " "))
		return nil
	}
	if err := bootstrap.StartUnit(ctx, joined.Args); err != nil {
		return fmt.Errorf("%w; the kubelet's files are in %s, and you can run the command again", err, o.Dir)
	}
	if err := untilJoined(ctx, c, o.Node, joined.Node, c.Clock.Now()); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "Node %s has joined %s.\n", joined.Node, joined.Server)
	if o.ServerTLS {
		fmt.Fprintln(c.Out,
			"Its serving certificate must be approved before logs and exec work: `kctl get csr`, then `kctl certificate approve NAME`.")
	}
	return nil
}

// untilJoined waits until the kubelet that has been started at a time has been let in and
// the API server has its node, so that who joins a machine can go on with the node at once.
func untilJoined(ctx context.Context, c *frame.CLI, n bootstrap.Node, name string, started time.Time) error {
	admitted := func(context.Context) error { return n.Admitted(started) }
	if err := until(ctx, c, "got its certificate", "on the control plane `kctl get csr`", admitted); err != nil {
		return err
	}
	if !n.Registers() {
		c.Warn("node %s is not waited for: the kubelet's configuration has registerNode: false", name)
		return nil
	}
	return until(ctx, c, "registered node "+name, "on the control plane `kctl get nodes`",
		func(ctx context.Context) error { return n.Registered(ctx, name, started) })
}

// stepWithin is how long to wait for one step of a kubelet that has just been started.
const stepWithin = 2 * time.Minute

// until waits until the kubelet has done something by itself, which look says, and tells
// the user if that is not the case already.
func until(ctx context.Context, c *frame.CLI, done, seeAlso string, look func(context.Context) error) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.Later(stepWithin, cancel)()
	ticker := c.Clock.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	var last error
	for {
		err := look(waiting)
		if err == nil {
			return nil
		}
		if last == nil {
			fmt.Fprintf(c.Err, "Waiting until the kubelet has %s, for %s at most.\n", done, stepWithin)
		}
		if last == nil || waiting.Err() == nil {
			last = err
		}
		select {
		case <-ticker.C():
		case <-waiting.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("the kubelet has not %s within %s: %w; see `journalctl -u %s`, and %s",
				done, stepWithin, last, bootstrap.Unit, seeAlso)
		}
	}
}

func advice(check doctor.Check) string {
	if check.Advice == "" {
		return ""
	}
	return "; " + check.Advice
}

func newReset(c *frame.CLI) *cobra.Command {
	var n bootstrap.Node
	var yes bool
	cmd := &cobra.Command{
		Use: "reset", Short: "Remove this machine from the cluster that it joined",
		Long: `Remove this machine from the cluster that it joined: its kubelet is stopped, all pods
of the container runtime at --cri-socket are ended, whoever made them, and the
kubelet's directory and configuration are deleted. The Node object stays; remove it
with "kctl delete node NAME".`,
		Example: "  kctl drain node-3 --ignore-daemonsets   # where the cluster can be reached\n" +
			"  kctl reset --yes                        # on node-3\n" +
			"  kctl delete node node-3                 # where the cluster can be reached",
		Args: frame.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return fmt.Errorf("this ends all pods of the container runtime at %s and deletes %s: say so by --yes", n.Runtime, n.RootDir)
			}
			if err := bootstrap.Reset(cmd.Context(), n); err != nil {
				return err
			}
			fmt.Fprintln(c.Out, "This machine is no node any more.")
			return nil
		},
	}
	nodeFlags(cmd, &n)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do it")
	return cmd
}
