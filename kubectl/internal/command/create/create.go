package create

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
)

// creating is `kctl create -f`.
type creating struct {
	send.Sender
	lookup.Selection
	raw frame.Raw
}

// New is `kctl create`.
func New(c *frame.CLI) *cobra.Command {
	k := &creating{Sender: send.Sender{CLI: c}, raw: frame.Raw{CLI: c}}
	cmd := &cobra.Command{
		Use:     "create -f FILENAME",
		Short:   "Create a resource from a file or from stdin",
		Example: "  kctl create -f pod.yaml\n  cat pod.json | kctl create -f -\n  kctl create namespace blue",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			k.Start()
			if len(args) > 0 {
				return unknownSub(cmd, args[0])
			}
			if !k.FromFiles() {
				return frame.UsageError(cmd, "must specify one of -f and -k")
			}
			if k.raw.URI != "" {
				return k.raw.Run(cmd, k.Files)
			}
			return k.run(cmd.Context())
		},
	}
	k.AddFiles(cmd.Flags(), "to use to create the resource")
	k.AddLabels(cmd.Flags())
	k.raw.Add(cmd, http.MethodPost, "POST to")
	k.Add(cmd)
	k.AddValidation(cmd)
	k.AddSaveConfig(cmd.Flags())
	cmd.AddCommand(newCreateNamespace(c), newCreateConfigMap(c), newCreateSecret(c), newCreateServiceAccount(c), newCreateToken(c),
		newCreateDeployment(c), newCreateJob(c), newCreateCronJob(c), newCreateService(c), newCreateIngress(c),
		newCreateRole(c), newCreateClusterRole(c), newCreateRoleBinding(c), newCreateClusterRoleBinding(c),
		newCreateQuota(c), newCreatePriorityClass(c), newCreateDisruptionBudget(c))
	return cmd
}

func unknownSub(cmd *cobra.Command, name string) error {
	return errors.New("unknown command " + quote(name) + " for " + quote(cmd.CommandPath()) + ": not supported yet; write a manifest and use -f")
}

func (k *creating) run(ctx context.Context) error {
	targets, err := lookup.Targets(ctx, k.Sender.CLI, &k.Selection, nil, "")
	if len(targets) == 0 {
		return cmp.Or(err, errors.New("no objects passed to create"))
	}
	failed := []error{err}
	for _, t := range targets {
		if err := k.create(ctx, t); err != nil {
			failed = append(failed, frame.InSource(err, "creating", t.Source))
		}
	}
	return errors.Join(failed...)
}

func (k *creating) create(ctx context.Context, t lookup.Target) error {
	if !lookup.Matches(k.Labels, t.Object) {
		return nil
	}
	if k.SaveConfig {
		if err := send.RememberApplied(t.Object); err != nil {
			return err
		}
	}
	created := t.Object
	if k.DryRun != frame.DryRunClient {
		var err error
		if created, err = k.Post(ctx, t.Resource.Resource, t.Namespace, t.Object); err != nil {
			return err
		}
	}
	return k.Print(&k.Printing, k.DryRun.Mark("created"), created)
}
