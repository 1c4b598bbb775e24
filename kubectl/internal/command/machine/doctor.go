package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kctl/kubectl/internal/bootstrap"
	"kctl/kubectl/internal/certificates"
	"kctl/kubectl/internal/cluster"
	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/doctor"
	"kctl/kubectl/internal/kubeconfig"
	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/shell"
	"kctl/proto/rest"
)

func newDoctor(c *frame.CLI) *cobra.Command {
	var n bootstrap.Node
	var output string
	var before time.Duration
	cmd := &cobra.Command{
		Use: "doctor", Short: "Find problems and suggest what to do about them",
		Long: `Find problems and suggest what to do about them. It checks the kubeconfig and the
connection to the API server, certificates and clocks, the API server's components,
nodes, aggregated servers, certificate requests and tokens; the certificates in --dir
(or in the directory of "kctl up" if the kubeconfig is from there); on a machine of
the control plane, the timers that renew certificates and take backups; and, if this
machine is a node, its runtime, network, kernel and disk. It changes nothing. The exit
code is 1 if a check fails.`,
		Example: `  kctl doctor
  kctl doctor --kubeconfig /etc/kctl/admin.kubeconfig -o json`,
		Args: frame.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output=%s: only json is supported", output)
			}
			n.Dir = clusterDir(c, cmd, n.Dir)
			checks := serverChecks(cmd.Context(), c, n, before)
			checks = append(checks, fileChecks(n.Dir, c.Clock.Now(), before)...)
			checks = append(checks, upkeepChecks(cmd.Context(), c, n.Dir)...)
			checks = append(checks, nodeChecks(cmd.Context(), n)...)
			if err := cmd.Context().Err(); err != nil { // by the user, and what was not answered is well
				return err
			}
			var err error
			if output == "json" {
				err = printJSON(c.Out, checks)
			} else {
				err = printChecks(c.Out, checks)
			}
			if err != nil {
				return err
			}
			for _, check := range checks {
				if check.Result == doctor.Fail {
					return errors.New("some checks failed")
				}
			}
			return nil
		},
	}
	nodeFlags(cmd, &n)
	cmd.Flags().DurationVar(&before, "warn", 30*24*time.Hour, "warn about certificates that expire within this time")
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json (default: a table)")
	return cmd
}

// localCluster is the cluster of `kctl up` whose kubeconfig is used; nil if it is another's.
func localCluster(c *frame.CLI) *cluster.Local {
	target, err := c.Kubeconfig()
	if err != nil {
		return nil // serverChecks tells
	}
	return cluster.Of(target.File)
}

// clusterDir is the directory of the cluster that a verb is about: by --dir, or else of the
// cluster of kctl up whose kubeconfig is used.
func clusterDir(c *frame.CLI, cmd *cobra.Command, dir string) string {
	if local := localCluster(c); local != nil && !cmd.Flags().Changed("dir") {
		return local.Dir
	}
	return dir
}

func serverChecks(ctx context.Context, c *frame.CLI, n bootstrap.Node, before time.Duration) []doctor.Check {
	const name = "kubeconfig"
	target, err := c.Kubeconfig()
	var client *rest.Client
	if err == nil {
		client, err = c.Server()
	}
	if err != nil {
		advice := "mend the file, or name another by --kubeconfig"
		if errors.Is(err, kubeconfig.ErrNone) {
			advice = "of a cluster elsewhere, `kctl pki kubeconfig --user NAME` makes one there"
			if _, err := os.Stat(n.Kubeconfig()); err == nil {
				advice += "; this machine's kubelet has " + n.Kubeconfig() + ", with which `kctl doctor --kubeconfig` looks as its node"
			}
		}
		return []doctor.Check{{Name: name, Result: doctor.Fail, Detail: err.Error(), Advice: advice}}
	}
	server := &doctor.Server{Config: target.Client, Client: client, Now: c.Clock.Now, Warn: before}
	if local := localCluster(c); local != nil {
		server.Up, server.UpNode = shell.Word(local.Dir), local.Node // the directory is for command lines only
	}
	checks := []doctor.Check{{Name: name, Result: doctor.OK, Detail: "the server is " + client.URL("").Host}}
	return append(checks, server.Checks(ctx)...)
}

// fileChecks looks at the certificates in a directory, if there are any.
func fileChecks(dir string, now time.Time, before time.Duration) []doctor.Check {
	const name = "certificates"
	if err := denied(dir); err != nil {
		return []doctor.Check{{Name: name, Result: doctor.Fail, Detail: err.Error(), Advice: "run it as root (sudo)"}}
	}
	if _, err := os.Stat(filepath.Join(dir, "pki")); err != nil {
		return nil
	}
	d := existingDirectory(dir)
	d.RenewBefore = before
	findings, err := d.Check(now)
	if err != nil {
		return []doctor.Check{{Name: name, Result: doctor.Fail, Detail: err.Error()}}
	}
	var checks []doctor.Check
	for _, f := range findings {
		for _, problem := range f.Problems {
			checks = append(checks, doctor.Check{
				Name:   name,
				Result: severity(f, now),
				Detail: problem,
				Advice: "`kctl pki check --dir " + shell.Word(dir) + "` lists them all",
			})
		}
	}
	if len(checks) == 0 {
		checks = append(checks, doctor.Check{Name: name, Result: doctor.OK, Detail: fmt.Sprintf("%d in %s are good", len(findings), dir)})
	}
	return checks
}

// upkeepChecks looks at systemd's timers, on a machine of the control plane with our units.
func upkeepChecks(ctx context.Context, c *frame.CLI, dir string) []doctor.Check {
	there := func(name string) bool { _, err := os.Stat(filepath.Join(configDir, "pki", name)); return err == nil }
	if dir != configDir || !there("apiserver.crt") && !there("etcd/server.crt") || !bootstrap.Systemd() {
		return nil
	}
	return doctor.NewUpkeep(c.Clock.Now).Checks(ctx)
}

// severity makes a warning of what only expires soon.
func severity(f certificates.Finding, now time.Time) doctor.Result {
	if f.Soon && f.Expires.After(now) && len(f.Problems) == 1 {
		return doctor.Warn
	}
	return doctor.Fail
}

// nodeChecks looks at this machine if it is a node.
func nodeChecks(ctx context.Context, n bootstrap.Node) []doctor.Check {
	machine := nodeMachine(n)
	if machine == nil {
		return nil
	}
	return machine.Checks(ctx)
}

// nodeMachine is this machine if it is a node, whose runtime, with kctl up, is no service.
func nodeMachine(n bootstrap.Node) *doctor.Machine {
	if _, err := os.Stat(n.Kubeconfig()); err != nil {
		return nil
	}
	local := cluster.In(n.Dir)
	if local == nil {
		machine := doctor.NewMachine(n.Runtime, n.RootDir, n.KubeletPort())
		machine.Kubelet, machine.KubeletHint = true, doctor.ServiceHint("", cluster.Kubelet)
		return machine
	}
	// No port, with --without=kubelet: another kubelet, or none, is as it should be.
	machine := doctor.NewMachine("unix://"+local.Socket(), local.KubeletRoot(), local.KubeletPort)
	dir := shell.Word(local.Dir)
	machine.Kubelet, machine.KubeletHint = true, doctor.ServiceHint(dir, cluster.Kubelet)
	machine.Start, machine.Install = "`kctl up --dir "+dir+"`", ""
	machine.Restart = fmt.Sprintf("if it hangs, end it with `kill -9 $(cat %s)`, and `kctl up --dir %s` starts it anew; %s is its log",
		shell.Word(local.PIDFile(cluster.Containerd)), dir, shell.Word(local.Log(cluster.Containerd)))
	return machine
}

func printChecks(out io.Writer, checks []doctor.Check) error {
	out = printer.VisibleTo(out)
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "RESULT\tCHECK\tDETAIL")
	for _, check := range checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", check.Result, check.Name, check.Detail)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var given []string
	for _, check := range checks {
		advice := check.Name + ": " + check.Advice
		if check.Result != doctor.OK && check.Advice != "" && !slices.Contains(given, advice) {
			fmt.Fprintf(out, "\n%s\n", advice)
			given = append(given, advice)
		}
	}
	return nil
}
