package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/kubelet/internal/hollow"
	"kctl/proto/daemon"
)

// hollowCommand runs many nodes that only simulate running pods.
func hollowCommand() *cobra.Command {
	o, log, memory := hollow.DefaultOptions(), daemon.LogOptions{}, ""
	cmd := &cobra.Command{
		Use:   "hollow",
		Short: "Runs many nodes without containers in one process, to try a cluster at scale",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Memory, err = resource.ParseQuantity(memory); err != nil {
				return &daemon.UsageError{Err: fmt.Errorf("--memory=%q is not a quantity", memory)}
			}
			if err := o.Validate(); err != nil {
				return &daemon.UsageError{Err: err}
			}
			logger, err := log.Logger()
			if err != nil {
				return &daemon.UsageError{Err: err}
			}
			return hollow.Run(cmd.Context(), o, logger)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&o.Nodes, "nodes", o.Nodes, "how many nodes")
	fs.StringVar(&o.Prefix, "name-prefix", o.Prefix, "prefix of the nodes' names, which end in a number")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"kubeconfig of a user with the rights of all these kubelets, such as an administrator")
	fs.StringToStringVar(&o.Labels, "node-labels", o.Labels, "labels for the nodes: key=value,…")
	fs.Int64Var(&o.CPU, "cpu", o.CPU, "cores of a node")
	fs.StringVar(&memory, "memory", o.Memory.String(), "memory of a node")
	fs.Int32Var(&o.Pods, "max-pods", o.Pods, "maximum number of pods on a node")
	fs.DurationVar(&o.Sandbox, "sandbox-latency", o.Sandbox, "simulated time to create a pod's sandbox")
	fs.DurationVar(&o.Start, "start-latency", o.Start, "simulated time to start a container")
	fs.DurationVar(&o.Stop, "stop-latency", o.Stop, "simulated time for containers to end after SIGTERM")
	fs.DurationVar(&o.Pull, "pull-latency", o.Pull, "simulated time to pull an image")
	log.AddFlags(fs)
	return cmd
}
