package create

import (
	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/generate"
	"kctl/proto/core"
)

func newCreateNamespace(c *frame.CLI) *cobra.Command {
	s := &send.Sender{CLI: c}
	cmd := &cobra.Command{
		Use: "namespace NAME", Aliases: []string{"ns"}, Short: "Create a namespace with the specified name",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := frame.OneName(cmd, args)
			if err != nil {
				return err
			}
			return s.CreateGenerated(cmd.Context(), core.Namespaces, generate.Namespace(name))
		},
	}
	s.AddCreate(cmd)
	return cmd
}

func newCreateServiceAccount(c *frame.CLI) *cobra.Command {
	s := &send.Sender{CLI: c}
	cmd := &cobra.Command{
		Use: "serviceaccount NAME", Aliases: []string{"sa"}, Short: "Create a service account with the specified name",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := frame.OneName(cmd, args)
			if err != nil {
				return err
			}
			return s.CreateGenerated(cmd.Context(), core.ServiceAccounts, generate.ServiceAccount(name))
		},
	}
	s.AddCreate(cmd)
	return cmd
}

func newCreateConfigMap(c *frame.CLI) *cobra.Command {
	s := &send.Sender{CLI: c}
	var data generate.Data
	var hash appendHash
	cmd := &cobra.Command{
		Use: "configmap NAME [--from-file=[key=]source] [--from-literal=key1=value1]", Aliases: []string{"cm"},
		Short: "Create a config map from a local file, directory or literal value",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := frame.OneName(cmd, args)
			if err != nil {
				return err
			}
			made, err := generate.ConfigMap(name, data)
			if err != nil {
				return err
			}
			object, err := hash.apply(made)
			if err != nil {
				return err
			}
			return s.CreateGenerated(cmd.Context(), core.ConfigMaps, object)
		},
	}
	s.AddCreate(cmd)
	addData(cmd, &data)
	hash.add(cmd.Flags(), "configmap")
	return cmd
}

func newCreateSecret(c *frame.CLI) *cobra.Command {
	parent := frame.Group("secret", "Create a secret using a specified subcommand")
	s := &send.Sender{CLI: c}
	var data generate.Data
	var kind string
	var hash appendHash
	cmd := &cobra.Command{
		Use: "generic NAME [--type=string] [--from-file=[key=]source] [--from-literal=key1=value1]", Short: "Create a secret from a local file, directory, or literal value",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := frame.OneName(cmd, args)
			if err != nil {
				return err
			}
			made, err := generate.Secret(name, kind, data)
			if err != nil {
				return err
			}
			object, err := hash.apply(made)
			if err != nil {
				return err
			}
			return s.CreateGenerated(cmd.Context(), core.Secrets, object)
		},
	}
	s.AddCreate(cmd)
	addData(cmd, &data)
	hash.add(cmd.Flags(), "secret")
	cmd.Flags().StringVar(&kind, "type", "", "The type of secret to create")
	parent.AddCommand(cmd, newCreateTLSSecret(c), newCreateRegistrySecret(c))
	return parent
}

func addData(cmd *cobra.Command, data *generate.Data) {
	cmd.Flags().StringArrayVar(&data.Literals, "from-literal", nil, "Specify a key and literal value (i.e. mykey=somevalue)")
	cmd.Flags().StringArrayVar(&data.Files, "from-file", nil, "Key file can be specified using its file path, in which case file basename will be used as key, or optionally with a key and file path. A directory gives a key for each of its files.")
	cmd.Flags().StringArrayVar(&data.EnvFiles, "from-env-file", nil, "Specify the path to a file to read lines of key=val pairs.")
}
