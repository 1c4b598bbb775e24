package create

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/threeway"
)

// createOptions has the flags of `kctl create -f`.
type createOptions struct {
	send.Sender
	lookup.Selection
	raw        frame.Raw
	edit, crlf bool
}

// New is `kctl create`.
func New(c *frame.CLI) *cobra.Command {
	k := &createOptions{Sender: send.Sender{CLI: c}, raw: frame.Raw{CLI: c}}
	k.Unnamed = true
	cmd := &cobra.Command{
		Use:     "create -f FILENAME",
		Short:   "Create a resource from a file or from stdin",
		Example: "  kctl create -f pod.yaml\n  cat pod.json | kctl create -f -\n  kctl create namespace blue",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			k.Start()
			if len(args) > 0 {
				return frame.UsageError(cmd, "Unexpected args: %v", args)
			}
			if !k.FromFiles() {
				return lookup.ErrNoFile
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
	cmd.Flags().BoolVar(&k.edit, "edit", false, "Edit the API resource before creating")
	cmd.Flags().BoolVar(&k.crlf, "windows-line-endings", false,
		"Only relevant if --edit=true. Defaults to the line ending native to your platform.")
	k.Add(cmd, "kubectl-create")
	k.AddValidation(cmd)
	k.Checked = k.FieldValidation
	k.AddSaveConfig(cmd.Flags())
	k.AddRecord(cmd)
	cmd.AddCommand(newCreateNamespace(c), newCreateConfigMap(c), newCreateSecret(c), newCreateServiceAccount(c), newCreateToken(c),
		newCreateDeployment(c), newCreateJob(c), newCreateCronJob(c), newCreateService(c), newCreateIngress(c),
		newCreateRole(c), newCreateClusterRole(c), newCreateRoleBinding(c), newCreateClusterRoleBinding(c),
		newCreateQuota(c), newCreatePriorityClass(c), newCreateDisruptionBudget(c))
	return cmd
}

func (k *createOptions) run(ctx context.Context) error {
	k.InOrder = k.DryRun == frame.DryRunNone
	targets, err := lookup.Targets(ctx, k.Sender.CLI, &k.Selection, nil, "")
	chosen := func(t lookup.Target) bool { return lookup.Matches(k.Labels, t.Object) }
	if !slices.ContainsFunc(targets, chosen) {
		return cmp.Or(err, errors.New("no objects passed to create"))
	}
	failed := []error{err}
	create := k.create
	if k.edit {
		create = k.createEdited
	}
	for _, t := range targets {
		if err := create(ctx, t); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (k *createOptions) create(ctx context.Context, t lookup.Target) error {
	if !lookup.Matches(k.Labels, t.Object) {
		return nil
	}
	if k.SaveConfig {
		if err := threeway.Remember(t.Object); err != nil {
			return err
		}
	}
	k.Record(t.Object)
	created := t.Object
	if k.DryRun != frame.DryRunClient {
		err := t.AwaitServed(ctx, k.Sender.CLI)
		if err != nil {
			return err
		}
		if created, err = k.Post(ctx, t.Resource.Resource, t.Namespace, t.Object); err != nil {
			return frame.InSource(err, "creating", t.Source)
		}
	}
	return k.Print(&k.Printing, k.DryRun.Mark("created"), created)
}

// createEdited lets the user edit an object before it is created.
func (k *createOptions) createEdited(ctx context.Context, t lookup.Target) error {
	format := cmp.Or(k.Output, "yaml")
	shown, err := k.Editable(format)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := shown.Print(&text, t.Object); err != nil {
		return err
	}
	return k.Edit(ctx, send.Text{Help: send.EditHelp, Format: format, CRLF: k.crlf, Content: text.Bytes()}, func(saved []byte) error {
		objects, err := k.ParseEdited(saved)
		if err != nil {
			return err
		}
		targets, err := lookup.Resolve(ctx, k.Sender.CLI, &k.Selection, objects)
		failed := []error{err}
		for _, edited := range targets {
			edited.Source = "" // it is no longer what the file says
			failed = append(failed, k.create(ctx, edited))
		}
		return errors.Join(failed...)
	})
}
