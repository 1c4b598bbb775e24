package create

import (
	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/generate"
	"kctl/proto/core"
)

func newCreateNamespace(c *frame.CLI) *cobra.Command {
	cmd := generator(c, "namespace NAME", "Create a namespace with the specified name", core.Namespaces,
		func(name string, _ []string) (core.Object, error) { return generate.Namespace(name), nil })
	cmd.Aliases = []string{"ns"}
	return cmd
}

func newCreateServiceAccount(c *frame.CLI) *cobra.Command {
	cmd := generator(c, "serviceaccount NAME", "Create a service account with the specified name", core.ServiceAccounts,
		func(name string, _ []string) (core.Object, error) { return generate.ServiceAccount(name), nil })
	cmd.Aliases = []string{"sa"}
	return cmd
}

func newCreateConfigMap(c *frame.CLI) *cobra.Command {
	var data generate.Data
	var hash appendHash
	cmd := generator(c, "configmap NAME [--from-file=[key=]source] [--from-literal=key1=value1]",
		"Create a config map from a local file, directory or literal value", core.ConfigMaps,
		func(name string, _ []string) (core.Object, error) {
			made, err := generate.ConfigMap(name, data)
			if err != nil {
				return nil, err
			}
			return hash.apply(made)
		})
	cmd.Aliases = []string{"cm"}
	addData(cmd, &data)
	hash.add(cmd.Flags(), "configmap")
	return cmd
}

func newCreateSecret(c *frame.CLI) *cobra.Command {
	parent := frame.Group("secret", "Create a secret using a specified subcommand")
	var data generate.Data
	var kind string
	var hash appendHash
	cmd := generator(c, "generic NAME [--type=string] [--from-file=[key=]source] [--from-literal=key1=value1]",
		"Create a secret from a local file, directory, or literal value", core.Secrets,
		func(name string, _ []string) (core.Object, error) {
			made, err := generate.Secret(name, kind, data)
			if err != nil {
				return nil, err
			}
			return hash.apply(made)
		})
	addData(cmd, &data)
	hash.add(cmd.Flags(), "secret")
	cmd.Flags().StringVar(&kind, "type", "", "The type of secret to create")
	parent.AddCommand(cmd, newCreateTLSSecret(c), newCreateRegistrySecret(c))
	return parent
}

func addData(cmd *cobra.Command, data *generate.Data) {
	cmd.Flags().StringArrayVar(&data.Literals, "from-literal", nil, "Specify a key and literal value (i.e. mykey=somevalue)")
	cmd.Flags().StringArrayVar(&data.Files, "from-file", nil,
		"Key file can be specified using its file path, in which case file basename will be used as key, or optionally with a key and file "+
			"path. A directory gives a key for each of its files.")
	cmd.Flags().StringArrayVar(&data.EnvFiles, "from-env-file", nil, "Specify the path to a file to read lines of key=val pairs.")
}
